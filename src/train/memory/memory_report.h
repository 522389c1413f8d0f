// MemoryReport logs a run's memory: the prediction, before anything is allocated, and the
// measurement at the end. It refuses a run for which a host has too little memory. Every call is
// collective. Owned by TrainingParts; the world outlives it.
#pragma once

#include <vector>

#include "mpi/communicator.h"
#include "mpi/topology.h"
#include "src/base/log.h"
#include "src/train/engine/engine.h"
#include "src/train/memory/memory_plan.h"

namespace trireme {

// Returns the resident bytes of memory that processes share, which include other ranks' memory that
// this one has read; 0 if the system does not report it.
std::int64_t shared_resident_bytes();

// SnapshotMemory is the memory that checkpoints have taken on this rank.
struct SnapshotMemory {
  std::int64_t bytes = 0;
  std::int64_t shared_bytes = 0;  // the part that shared_resident_bytes() counts
};

class MemoryReport {
 public:
  // Throws ConfigError on every rank, with numbers and advice, if the ranks of a host together will
  // take more than it has available, unless run.memory_check is off.
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
