// SlurmJob describes the Slurm job that this process belongs to, as the environment shows it. A
// pure function of the environment: it calls neither Slurm's commands nor its library.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace trireme {

// Looks up a variable; std::nullopt if it is not set.
using SlurmEnvironment = std::function<std::optional<std::string>(const std::string& name)>;

struct SlurmJob {
  std::int64_t id = 0;
  std::string name;
  std::vector<std::string> nodes;  // as allocated; nodes that have died since are included
  int restart_count = 0;           // 0 in the first run of the job
  std::optional<std::int64_t> step;
  std::int64_t tasks = 0;       // tasks that the job requests; 0 if it does not say
  std::int64_t step_tasks = 0;  // 0 outside a step
  std::string partition;
  std::string node;                        // this node's name in Slurm
  std::optional<std::int64_t> array_task;  // this task's number in a job array
  // The id with which Slurm's commands address only this job: "42", or "40_2" in an array, where
  // the bare number may mean all tasks.
  std::string command_id;
  std::optional<std::int64_t> end_seconds;  // since the epoch; only newer versions of Slurm set it
};

// Returns nullopt outside a job. Throws a ConfigError that names the variable if a value is no
// number or no host list, which happens if it was set by hand.
std::optional<SlurmJob> slurm_job(const SlurmEnvironment& environment);

}  // namespace trireme
