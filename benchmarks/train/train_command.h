// Adds the command line of `trireme bench train`.
#pragma once

#include "src/app/command/app_context.h"
#include "src/app/command/command_line.h"

namespace trireme {

void add_train_bench(CommandLine& bench, AppContext& context);

}  // namespace trireme
