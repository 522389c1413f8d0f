// `trireme scale` measures how a training run scales with the number of nodes.
#pragma once

#include "src/app/command/command_line.h"

namespace trireme {

void add_scale_command(CommandLine& app, int& exit_code);

}  // namespace trireme
