// `trireme launch` supervises a run: it starts the ranks, watches them, and relaunches after
// faults.
#pragma once

#include "src/app/command/command_line.h"

namespace trireme {

void add_launch_command(CommandLine& app, int& exit_code);

}  // namespace trireme
