// MicroBatchOutput is what a rank has computed of a step's micro-batches while it is still on the
// device, and MicroBatchBits is the same on the host. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "src/compute/host_reads.h"
#include "src/tensor/tensor.h"
#include "src/train/engine/gradient_watch.h"

namespace trireme {

// MicroBatchBits holds what a rank has computed in a step, to be compared with another run of it.
struct MicroBatchBits {
  // For each of its micro-batches, the sum of the token losses; zeros except on the last stage.
  std::vector<double> losses;
  std::vector<std::uint64_t> digests;  // of their gradients; empty unless divergence.digests is set
};

// MicroBatchOutput holds the same while it is on the device. The gradients' sinks outlive it.
struct MicroBatchOutput {
  std::int64_t micro_batches = 0;
  Tensor losses;  // f64 [micro_batches]; empty unless this rank has the head
  // f64 [micro_batches, B]: of each sample; empty unless the run mixes sources and this rank has
  // the head.
  Tensor sample_losses;
  // f64 [micro_batches, 2]: the parts of the losses with a teacher, as Run::taught; empty without.
  Tensor taught;
  // [micro_batches, B]: how many targets of each sample count; zeros if this rank reads none.
  std::vector<std::int64_t> counted;
  // The watches whose digests are asked for, with the numbers of their micro-batches.
  std::vector<std::pair<std::int64_t, std::unique_ptr<GradientWatch>>> watches;
  bool has_digests = false;
  // The leases of tokens that a device may not have copied before reads.wait() returns.
  std::vector<std::shared_ptr<const void>> leases;

  // Adds all of it to `reads`; bits() returns it after reads.wait().
  void read(HostReads& reads);
  MicroBatchBits bits(const HostReads& reads) const;
  // Returns the sample losses, or nothing if there are none on this rank.
  std::vector<double> losses_of_samples(const HostReads& reads) const;
  // Returns the parts of the losses, or nothing if there are none on this rank.
  std::vector<double> parts_of_losses(const HostReads& reads) const;

 private:
  std::vector<std::size_t> reads_;  // losses, if any, and the digests of the watches
  std::optional<std::size_t> read_of_samples_;
  std::optional<std::size_t> read_of_parts_;
};

}  // namespace trireme
