// `trireme generate` draws text from a checkpoint, token by token.
#pragma once

#include "src/app/command/app_context.h"
#include "src/app/command/command_line.h"

namespace trireme {

void add_generate_command(CommandLine& app, AppContext& context);

}  // namespace trireme
