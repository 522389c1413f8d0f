#include "mpi/launch_environment.h"

#include <cstdlib>
#include <limits>

#include "src/base/error.h"

namespace trireme {
namespace {

// Returns whether the variable is set to a number above one.
bool is_several(const std::optional<std::string>& value) {
  return value && std::strtol(value->c_str(), nullptr, 10) > 1;
}

}  // namespace

EnvironmentLookup process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

Launcher detect_launcher(const EnvironmentLookup& environment) {
  if (environment("PMIX_RANK")) {
    return environment("OMPI_COMM_WORLD_SIZE") ? Launcher::mpirun : Launcher::srun;
  }
  if (environment("SLURM_STEP_ID") && is_several(environment("SLURM_STEP_NUM_TASKS"))) {
    throw ConfigError(
        fmt::format("srun started {} tasks without PMIx, so each would run alone as rank 0 of 1: "
                    "start them with 'srun --mpi=pmix ...' ('srun --mpi=list' shows whether this "
                    "Slurm supports it), or with 'mpirun ...' inside the allocation",
                    *environment("SLURM_STEP_NUM_TASKS")));
  }
  if (is_several(environment("PMI_SIZE"))) {
    throw ConfigError(fmt::format(
        "the launcher of another MPI (PMI_SIZE={}) started this program, which is built with Open "
        "MPI, so each process would run alone as rank 0 of 1: start it with Open MPI's mpirun "
        "('mpirun --version' shows which MPI it belongs to), or with 'srun --mpi=pmix'",
        *environment("PMI_SIZE")));
  }
  return Launcher::alone;
}

double seconds_until_killed(const EnvironmentLookup& environment) {
  if (!environment("OMPI_COMM_WORLD_RANK") || environment("TRIREME_LAUNCH_ID")) {
    return std::numeric_limits<double>::infinity();
  }
  constexpr double kDefaultSeconds = 1;
  const std::string text = environment("OMPI_MCA_odls_base_sigkill_timeout").value_or("");
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  const bool is_set = !text.empty() && *end == '\0' && seconds >= 0;
  return 2 * (is_set ? seconds : kDefaultSeconds);
}

}  // namespace trireme
