// Reads from the journal of a run under `trireme launch` how often what went wrong and how long
// recovery took, for simulations of larger jobs, and replays its faults to check the simulation.
// Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "slurm/journal/account.h"
#include "src/plan/simulate/job_faults.h"
#include "src/plan/simulate/job_model.h"
#include "src/plan/simulate/job_simulation.h"

namespace trireme {

struct RunJournal {
  // The rates and times as measured, for a job of this run's nodes; a time of which the run has no
  // example keeps its default.
  JobModel model;
  // A model and faults whose simulation has each fault of the run at its step, or, if the attempt
  // did none, at its time within the attempt, but all durations of recovery, saves and steps as
  // they are on average.
  JobModel replay;
  JobFaults faults;
  double wall = 0;     // seconds, as measured
  double goodput = 0;  // (train + evaluate) / wall, as measured
};

// Reads checkpoint.every, memory_every and partner from <run>/config.yaml; other keys are ignored.
// Throws ConfigError, which starts with the name of the file, if it is not YAML.
JobModel::Checkpoint checkpoint_settings(std::string_view yaml, const std::string& name);

// settings: how often the run saved. Throws DataError if the run never finished a
// step, or its figures are absurd.
RunJournal run_journal(const Account& account, const JobModel::Checkpoint& settings);

}  // namespace trireme
