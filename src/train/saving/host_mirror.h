// HostMirror holds a copy of tensors of a device in the host's memory, from which checkpoints are
// written and into which they are read. If the device's memory is the host's, there is no copy, and
// the functions return the blocks as they are. The memory is pinned and is kept for the next save.
// Owned by TrainingCheckpoints or by one load; one thread; the context outlives it.
#pragma once

#include <memory>
#include <vector>

#include "io/checkpoint/types.h"
#include "src/compute/device_context.h"

namespace trireme {

class HostMirror {
 public:
  explicit HostMirror(DeviceContext& context);

  // Copies the blocks' memory to the host and returns the same blocks there. Waits until the copy
  // has finished. What the host holds of earlier blocks is lost.
  std::vector<TensorBlock> fetch(const std::vector<TensorBlock>& blocks);
  // Copies everything that the latest fetch() covered back to the device, and waits.
  void store();

 private:
  // Span is a piece of the device's memory that blocks cover without a gap, and its copy.
  struct Span {
    char* device = nullptr;
    std::int64_t bytes = 0;
    char* host = nullptr;
  };
  void cover(const std::vector<TensorBlock>& blocks);
  void copy(bool to_host);

  DeviceContext& context_;
  std::unique_ptr<Pool> pool_;  // null if the device's memory is the host's
  Buffer memory_;
  std::vector<Span> spans_;  // sorted by address
};

}  // namespace trireme
