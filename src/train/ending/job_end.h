// Asks Slurm when the job of this process will end, before MPI starts. Only rank 0 asks, since only
// rank 0 watches the clock.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "mpi/launch_environment.h"

namespace trireme {

struct JobEnd {
  // Nothing if there is no limit or it is unknown.
  std::optional<std::chrono::steady_clock::time_point> time;
  std::string trouble;  // why it is unknown, or ""
};

JobEnd find_job_end(const EnvironmentLookup& environment);

}  // namespace trireme
