// When this process's job will be ended, asked of Slurm before MPI starts: rank 0 alone asks, and
// alone watches the clock.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "mpi/launch_environment.h"

namespace trireme {

struct JobEnd {
  std::optional<std::chrono::steady_clock::time_point> time;  // none: no limit, or not known
  std::string trouble;                                        // why it is not known
};

JobEnd find_job_end(const EnvironmentLookup& environment);

}  // namespace trireme
