// IoTransfers runs the transfers of one rank through an engine and times them; all ranks do so at
// once. Remembers how much each rank has written, which is less than the layout says if a stonewall
// stopped it.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "benchmarks/io/io.h"
#include "benchmarks/io/io_pattern.h"
#include "benchmarks/io/io_phase.h"
#include "io/checkpoint/staging.h"

namespace trireme {

// IoPhaseResult is the same on all ranks.
struct IoPhaseResult {
  IorPhase all;
  std::vector<double> by_rank;  // seconds from a rank's own begin to its own end
  std::int64_t wrong = 0;       // bytes of transfers that came from another place
};

class IoTransfers {
 public:
  IoTransfers(const BenchIoOptions& options, MpiSession& session);

  int depth() const { return engine_->depth(); }
  // Writes this rank's transfers to the path, or reads those of rank `whose`. Collective.
  IoPhaseResult run(bool writes, const std::filesystem::path& path, int whose);
  // Reads all transfers of rank `whose` and compares every byte. Returns the wrong bytes of all
  // ranks. Collective.
  std::int64_t count_wrong(const std::filesystem::path& path, int whose);

 private:
  char* buffer(int slot) const;
  // Returns how many transfers were made. wrong: is increased.
  std::int64_t transfer_all(bool writes, int whose, std::int64_t most, std::int64_t& wrong);

  const BenchIoOptions& options_;
  MpiSession& session_;
  IoPattern pattern_;
  std::unique_ptr<IoEngine> engine_;
  PageBuffer memory_;                  // one transfer per slot, each on a page of its own
  std::vector<std::int64_t> written_;  // transfers of each rank in the last write
};

}  // namespace trireme
