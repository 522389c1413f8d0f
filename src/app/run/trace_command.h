// `trireme trace` shows where the time of traced steps went.
#pragma once

#include "src/app/command/command_line.h"

namespace trireme {

void add_trace_command(CommandLine& app);

}  // namespace trireme
