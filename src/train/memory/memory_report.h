// MemoryReport logs a run's memory: the prediction, before anything is allocated, and the
// measurement at the end. It refuses a run for which a host or a CUDA device has too little memory.
// Calls are collective unless they say otherwise. Owned by TrainingParts; the world outlives it.
#pragma once

#include <utility>
#include <vector>

#include "mpi/communicator.h"
#include "mpi/topology.h"
#include "src/base/log.h"
#include "src/train/engine/engine.h"
#include "src/train/memory/memory_plan.h"
#include "src/train/memory/step_memory.h"

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
  // device: where this rank computes. Throws ConfigError on every rank, with numbers and advice, if
  // the ranks of a CUDA device, or of a host, together will take more of its memory than is
  // available, unless run.memory_check is off.
  MemoryReport(const RunConfig& config, const Layout& layout, const std::vector<RankPlace>& places,
               Communicator& world, Device device);

  // Return what the ranks will take from their hosts, and from their devices (empty for CPUs).
  const std::vector<MemoryPlan>& predicted() const { return predicted_; }
  const std::vector<MemoryPlan>& predicted_on_devices() const { return on_devices_; }
  void log_predicted(Log& log) const;
  // Notes what this rank has of its device now, which may be more than at the end. Not collective.
  void note_device_use();
  // Returns the plan and the measurement of the rank that has most: on devices, if there are any.
  // Where other processes or ranks use a device, too, nobody can tell what a rank has taken of it:
  // nothing is measured there, and 0 is returned.
  std::pair<std::int64_t, std::int64_t> log_measured(const Engine& engine,
                                                     const SnapshotMemory& snapshots,
                                                     Log& log) const;

 private:
  void check_devices(const RunConfig& config, const Layout& layout,
                     const std::vector<RankPlace>& places);
  MemoryPlan measured_on_device(const StepMemory& step) const;
  bool is_device_shared() const;
  MemoryPlan measured_on_host(const Engine& engine, const StepMemory& step,
                              const SnapshotMemory& snapshots) const;

  Communicator& world_;
  Device device_;
  std::vector<MemoryPlan> predicted_;   // by rank
  std::vector<MemoryPlan> on_devices_;  // by rank; empty for CPUs
  std::int64_t free_at_start_ = 0;      // bytes of this rank's device
  std::int64_t noted_use_ = 0;          // the most bytes of it that were noted
};

}  // namespace trireme
