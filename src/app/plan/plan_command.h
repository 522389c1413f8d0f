// `trireme plan` predicts training runs on any cluster. One file for each of its commands.
#pragma once

#include "src/app/command/command_line.h"

namespace trireme {

// exit_code: set if no layout fits.
void add_plan_command(CommandLine& app, int& exit_code);

}  // namespace trireme
