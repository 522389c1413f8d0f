// `trireme compare` says whether a measurement is slower than an earlier one.
#pragma once

#include "src/app/command/command_line.h"
#include "src/policy/access.h"

namespace trireme {

// access: asked before encrypted logs of a run are opened; empty: nobody is asked.
void add_compare_command(CommandLine& app, int& exit_code, const AccessSource& access = {});

}  // namespace trireme
