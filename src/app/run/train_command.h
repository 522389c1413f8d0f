// `trireme train` trains a model.
#pragma once

#include "src/app/command/app_context.h"
#include "src/app/command/command_line.h"

namespace trireme {

void add_train_command(CommandLine& app, AppContext& context);

}  // namespace trireme
