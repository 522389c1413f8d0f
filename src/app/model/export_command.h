// `trireme export`: writes checkpoints and runs as files of other programs.
#pragma once

#include "src/app/command/app_context.h"
#include "src/app/command/command_line.h"

namespace trireme {

void add_export_command(CommandLine& app, AppContext& context);

}  // namespace trireme
