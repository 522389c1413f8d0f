// `trireme health`: whether this node is fit to train, in under 30 s, on one line.
#pragma once

#include "src/app/command_line.h"

namespace trireme {

void add_health_command(CommandLine& app, int& exit_code);

}  // namespace trireme
