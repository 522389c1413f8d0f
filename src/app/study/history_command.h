// `trireme history` keeps results over time and finds when something changed.
#pragma once

#include "src/app/command/command_line.h"
#include "src/policy/access.h"

namespace trireme {

// access: asked before encrypted logs of a run are opened; empty: nobody is asked.
void add_history_command(CommandLine& app, int& exit_code, const AccessSource& access = {});

}  // namespace trireme
