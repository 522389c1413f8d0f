// trireme launch: supervises a run: starts its ranks, watches them, relaunches what breaks.
#pragma once

#include "src/app/command_line.h"

namespace trireme {

void add_launch_command(CommandLine& app, int& exit_code);

}  // namespace trireme
