// `trireme plan` predicts training runs on any cluster. One file for each of its commands.
#pragma once

#include "src/app/command/app_context.h"
#include "src/app/command/command_line.h"

namespace trireme {

// Sets the context's exit code if no layout fits.
void add_plan_command(CommandLine& app, AppContext& context);

}  // namespace trireme
