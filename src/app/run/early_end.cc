#include "src/app/run/early_end.h"

#include <cmath>
#include <optional>

#include <fmt/core.h>

#include "mpi/launch_environment.h"

namespace trireme {

TimeLimit time_limit(const RunConfig& config, const JobEnd& end, Log& log) {
  const IntegerOrWord& margin = config.stop_before_end;
  if (!end.trouble.empty()) {
    log.warning(
        fmt::format("cannot find out when this job ends ({}): the run saves on SIGUSR1, but not "
                    "automatically before the end",
                    end.trouble));
  }
  if (!end.time || margin.is("never")) {
    return {};
  }
  const auto seconds = static_cast<double>(margin.integer);
  return {*end.time, margin.is("auto") ? std::nullopt : std::optional(seconds)};
}

void warn_of_grace(Log& log) {
  const double seconds = seconds_until_killed(process_environment());
  if (std::isfinite(seconds)) {
    log.info(fmt::format(
        "Ctrl-C: saves a checkpoint if the step in progress ends within {:.0f} s, then mpirun "
        "kills the ranks. 'trireme launch -- train ...' saves however long a step takes.",
        seconds));
  }
}

}  // namespace trireme
