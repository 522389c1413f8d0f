// `trireme history` keeps results over time and finds when something changed.
#pragma once

#include "src/app/command/command_line.h"

namespace trireme {

void add_history_command(CommandLine& app, int& exit_code);

}  // namespace trireme
