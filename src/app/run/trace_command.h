// `trireme trace` shows where the time of traced steps went.
#pragma once

#include "src/app/command/command_line.h"
#include "src/policy/access.h"

namespace trireme {

// access: decides before encrypted logs of a run are opened; if empty, nothing is checked.
void add_trace_command(CommandLine& app, const AccessSource& access = {});

}  // namespace trireme
