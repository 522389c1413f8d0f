// `trireme doctor CONFIG` finds what would make a launch fail, before it does. It runs alone, or
// under mpirun or srun like the run itself.
#pragma once

#include "src/app/command/app_context.h"
#include "src/app/command/command_line.h"

namespace trireme {

void add_doctor_command(CommandLine& app, AppContext& context);

}  // namespace trireme
