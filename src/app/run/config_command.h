// `trireme config show` prints the resolved configuration and where each value comes from.
#pragma once

#include "src/app/command/app_context.h"
#include "src/app/command/command_line.h"

namespace trireme {

void add_config_command(CommandLine& app, AppContext& context);

}  // namespace trireme
