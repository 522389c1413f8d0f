// `trireme import`: makes a checkpoint from another program's model.
#pragma once

#include "src/app/command/app_context.h"
#include "src/app/command/command_line.h"

namespace trireme {

void add_import_command(CommandLine& app, AppContext& context);

}  // namespace trireme
