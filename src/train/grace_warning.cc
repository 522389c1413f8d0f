#include "src/train/grace_warning.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "mpi/launch_environment.h"

namespace trireme {

void GraceWarning::compare(double seconds, Log& log) {
  const double grace = seconds_until_killed(process_environment());
  if (seconds < grace || std::exchange(warned_, true)) {
    return;
  }
  log.warning(fmt::format(
      "Ctrl-C would lose the steps since the last checkpoint: a step and a save take {:.1f} s, and "
      "mpirun kills the ranks {:.0f} s after Ctrl-C. Start with 'trireme launch', or give mpirun "
      "--mca odls_base_sigkill_timeout {:.0f}; 'kill -USR2 PID' with mpirun's PID saves in any "
      "case",
      seconds, grace, std::ceil(seconds) + 10));
}

}  // namespace trireme
