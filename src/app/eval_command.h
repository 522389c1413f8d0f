// `trireme eval`: the held-out loss and perplexity of a checkpoint.
#pragma once

#include "src/app/app_context.h"
#include "src/app/command_line.h"

namespace trireme {

void add_eval_command(CommandLine& app, AppContext& context);

}  // namespace trireme
