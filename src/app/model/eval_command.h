// `trireme eval` computes the loss and perplexity of a checkpoint on held-out data.
#pragma once

#include "src/app/command/app_context.h"
#include "src/app/command/command_line.h"

namespace trireme {

void add_eval_command(CommandLine& app, AppContext& context);

}  // namespace trireme
