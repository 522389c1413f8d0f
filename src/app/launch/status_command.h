// `trireme status` shows the state of a run.
#pragma once

#include "src/app/command/command_line.h"

namespace trireme {

void add_status_command(CommandLine& app);

}  // namespace trireme
