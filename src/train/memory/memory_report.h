// MemoryReport: what a run says of its memory: predicted, before anything is allocated, and, at the
// end, measured; and that it does not start where a host has too little. Every call is collective.
// Owned by the run's parts; the world and the places outlive it.
#pragma once

#include <vector>

#include "mpi/communicator.h"
#include "mpi/topology.h"
#include "src/base/log.h"
#include "src/train/engine/engine.h"
#include "src/train/memory/memory_plan.h"

namespace trireme {

// What is resident of memory that processes share: among it other ranks', of which this one has
// read. 0 where nobody says so.
std::int64_t shared_resident_bytes();

// What checkpoints have taken on this rank.
struct SnapshotMemory {
  std::int64_t bytes = 0;
  std::int64_t shared_bytes = 0;  // those of it that shared_resident_bytes() counts
};

class MemoryReport {
 public:
  // ConfigError on every rank, with numbers and advice, where the ranks of a host together will
  // take more than it has; not if run.memory_check is off.
  MemoryReport(const RunConfig& config, const Layout& layout, const std::vector<RankPlace>& places,
               Communicator& world);

  const std::vector<MemoryPlan>& predicted() const { return predicted_; }
  void log_predicted(Log& log) const;
  void log_measured(const Engine& engine, const SnapshotMemory& snapshots, Log& log) const;

 private:
  Communicator& world_;
  std::vector<MemoryPlan> predicted_;  // by rank
};

}  // namespace trireme
