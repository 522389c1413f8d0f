// `trireme sparsify`: prunes the weights of a checkpoint.
#pragma once

#include "src/app/command/app_context.h"
#include "src/app/command/command_line.h"

namespace trireme {

void add_sparsify_command(CommandLine& app, AppContext& context);

}  // namespace trireme
