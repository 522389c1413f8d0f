// Reads from the log of a run's rank 0 how long its checkpoints took, for simulations of larger
// jobs. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/plan/simulate/job_model.h"

namespace trireme {

// Means over the saves that succeeded.
struct SaveTimes {
  struct Place {
    std::int64_t saves = 0;
    double seconds = 0;        // from a save's start until it is durable, or until copies are made
    double stall_seconds = 0;  // for which it stops training
    double steps = 0;          // between one save and the next; 0 if there are no two
  };
  Place disk, memory;

  // Returns settings that save as often as these saves came, in steps.
  JobModel::Checkpoint observed_settings() const;

  // Adds what one file of the log tells. Lines that are damaged are ignored.
  void add_log(std::string_view log);
};

// Puts the times into the model as far as the run has examples, and returns for people what the
// model's saves rest on, one line each.
std::vector<std::string> use_save_times(const SaveTimes& times, JobModel::Checkpoint& checkpoint);

}  // namespace trireme
