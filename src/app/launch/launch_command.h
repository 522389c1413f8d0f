// `trireme launch` supervises a run: it starts the ranks, watches them, and relaunches after
// faults.
#pragma once

#include "src/app/command/app_context.h"
#include "src/app/command/command_line.h"

namespace trireme {

void add_launch_command(CommandLine& app, AppContext& context);

}  // namespace trireme
