// SavingPolicy: which steps a run saves, on disk and in memory, and what it learns for `auto`
// intervals from the saves and steps it has measured. The same on all ranks.
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
  // `mtbf_hours`: as the launcher has seen; 0: unknown. Configuration, world and report outlive the
  // policy.
  SavingPolicy(const RunConfig& config, Communicator& world, const SaveReport& report,
               double mtbf_hours);

  // The run goes on after this step, which these levels hold.
  void start(std::int64_t step, bool on_disk, bool in_memory);
  // Whether a save is due after the step.
  bool disk_due(std::int64_t step) const;
  bool memory_due(std::int64_t step) const { return memory_.due(step); }
  // Whether a level has saved or loaded the step, or is about to.
  bool disk_has(std::int64_t step) const { return step == on_disk_; }
  bool memory_has(std::int64_t step) const { return step == in_memory_; }
  void disk_saves(std::int64_t step);
  void memory_saves(std::int64_t step);
  // What memory has of its latest step is out of date.
  void forget_memory() { in_memory_ = -1; }

  // A training step took so long.
  void step_took(double seconds);
  // Collective, after a save: sets the interval if it is `auto`. `cost`: of a save, to the run;
  // `least`: an interval takes no less; seconds.
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
  std::int64_t on_disk_ = -1;  // the latest step of the level
  std::int64_t in_memory_ = -1;
  std::vector<double> step_times_;
  std::size_t next_step_time_ = 0;
};

}  // namespace trireme
