// Runs launchers such as srun and mpirun, which start programs elsewhere.
#pragma once

#include "src/base/command.h"

namespace trireme {

// Runs a launcher as run_command() does. When it has to be ended, it gets time to end what it has
// started. It is also ended if this process dies. Call it on a thread that lives until it returns.
// Throws Interrupted.
CommandResult run_launcher(std::vector<std::string> argv, std::chrono::duration<double> limit);

}  // namespace trireme
