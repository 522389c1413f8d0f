// SlurmJob: what the environment says of the Slurm job that this process is part of. A pure
// function of the environment: no Slurm command, no Slurm library.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace trireme {

// How a variable is looked up: std::nullopt where it is not set.
using SlurmEnvironment = std::function<std::optional<std::string>(const std::string& name)>;

struct SlurmJob {
  std::int64_t id = 0;
  std::string name;
  std::vector<std::string> nodes;  // as allocated: a node that has died since is still listed
  int restart_count = 0;           // 0 on the first run
  std::optional<std::int64_t> step;
  std::int64_t tasks = 0;       // that the job asks for; 0: it does not say
  std::int64_t step_tasks = 0;  // 0 outside of a step
  std::string partition;
  std::string node;                        // this one, as Slurm calls it
  std::optional<std::int64_t> array_task;  // of a job array
  // How commands of Slurm are told of this job alone: "42", in an array "40_2"; there the bare
  // number may mean all tasks.
  std::string command_id;
  std::optional<std::int64_t> end_seconds;  // since the epoch; newer Slurms say it
};

// Nothing outside of a job. ConfigError, naming the variable, where one of them is no number or no
// host list: somebody has set it by hand.
std::optional<SlurmJob> slurm_job(const SlurmEnvironment& environment);

// Whether srun has started several tasks of this step without PMIx, so that MPI can't connect them.
bool lacks_pmix(const SlurmEnvironment& environment);

}  // namespace trireme
