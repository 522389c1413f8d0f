// Finds out from the environment what started this process, before MPI is initialized. The
// functions depend on their arguments only.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace trireme {

// Looks up an environment variable; std::nullopt means that it is not set.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;
EnvironmentLookup process_environment();

enum class Launcher {
  alone,   // no launcher: one rank, no MPI
  mpirun,  // Open MPI's mpirun, also inside a Slurm job
  srun,    // srun --mpi=pmix
};

// Throws ConfigError, with the command to type instead, if a launcher started several processes
// that MPI could not connect: each of them would run as rank 0 of 1.
Launcher detect_launcher(const EnvironmentLookup& environment);

// Returns how many seconds the ranks live after mpirun gets a Ctrl-C or SIGTERM: it sends them
// SIGTERM and that much later SIGKILL. Open MPI 4 waits for its odls_base_sigkill_timeout twice
// (measured: 2 s by default). Returns infinity without mpirun, and under `trireme launch`, which
// asks the ranks to end by itself.
double seconds_until_killed(const EnvironmentLookup& environment);

}  // namespace trireme
