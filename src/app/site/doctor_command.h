// `trireme doctor CONFIG`: what would fail in this launch, before it does. Under mpirun or srun as
// the run will be, or alone.
#pragma once

#include "src/app/app_context.h"
#include "src/app/command_line.h"

namespace trireme {

void add_doctor_command(CommandLine& app, AppContext& context);

}  // namespace trireme
