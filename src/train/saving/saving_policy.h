// SavingPolicy decides which steps a run saves on disk and in memory, and computes `auto` intervals
// from the measured saves and steps. It is owned by TrainingCheckpoints and has the same state on
// all ranks, except for the step times.
#pragma once

#include <cstdint>
#include <vector>

#include "mpi/communicator.h"
#include "src/train/run/run_config.h"
#include "src/train/saving/save_report.h"
#include "src/train/saving/save_schedule.h"

namespace trireme {

class SavingPolicy {
 public:
  // `mtbf_hours` is the mean time between failures that the launcher has observed; 0 means unknown.
  // Configuration, world and report must outlive the policy.
  SavingPolicy(const RunConfig& config, Communicator& world, const SaveReport& report,
               double mtbf_hours);

  // The run continues after this step, which is present on disk or in memory as the flags say.
  void start(std::int64_t step, bool on_disk, bool in_memory);
  // Return whether a save is due after the step.
  bool disk_due(std::int64_t step) const;
  bool memory_due(std::int64_t step) const { return memory_.due(step); }
  // Return whether the step was saved there or loaded from there, or its save has started.
  bool disk_has(std::int64_t step) const { return step == on_disk_; }
  bool memory_has(std::int64_t step) const { return step == in_memory_; }
  void disk_saves(std::int64_t step);
  void memory_saves(std::int64_t step);
  // Forgets the latest step in memory, because its counters are out of date.
  void forget_memory() { in_memory_ = -1; }

  // Records the duration of a training step.
  void step_took(double seconds);
  // Collective, after a save. Sets the interval if it is `auto`. `cost` is what a save costs the
  // run, and `least` is the shortest possible interval, both in seconds.
  void learn_disk(double cost, double least);
  void learn_memory(double cost, double least);

 private:
  void learn(SaveSchedule& schedule, const char* key, double cost, double least);

  const RunConfig& config_;
  Communicator& world_;
  const SaveReport& report_;
  double mtbf_hours_;
  SaveSchedule disk_;
  SaveSchedule memory_;
  std::int64_t on_disk_ = -1;    // the latest step on disk
  std::int64_t in_memory_ = -1;  // the latest step in memory
  std::vector<double> step_times_;
  std::size_t next_step_time_ = 0;
};

}  // namespace trireme
