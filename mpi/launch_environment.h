// LaunchEnvironment: who started this process, read from the environment before MPI is touched.
// Pure functions of what they are given.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace trireme {

// How an environment variable is looked up: std::nullopt where it is not set.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;
EnvironmentLookup process_environment();

enum class Launcher {
  alone,   // nobody: one rank, no MPI
  mpirun,  // Open MPI's mpirun, also inside a Slurm job
  srun,    // srun --mpi=pmix
};

// ConfigError, saying what to type instead, where a launcher started several processes that MPI
// could not connect: each of them would believe to be rank 0 of 1.
Launcher detect_launcher(const EnvironmentLookup& environment);

// How long mpirun lets the ranks live after a Ctrl-C, or a SIGTERM to it: SIGTERM, and SIGKILL so
// many seconds later. Open MPI 4 waits for its odls_base_sigkill_timeout twice (measured: 2 s by
// default). Infinite without mpirun, and under `trireme launch`, which asks the ranks itself.
double seconds_until_killed(const EnvironmentLookup& environment);

}  // namespace trireme
