// `trireme health` reports in one line and less than 30 s whether this node is fit to train.
#pragma once

#include "src/app/command/command_line.h"

namespace trireme {

void add_health_command(CommandLine& app, int& exit_code);

}  // namespace trireme
