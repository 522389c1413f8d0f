// Adds the command line of `trireme bench all`.
#pragma once

#include "src/app/command/app_context.h"
#include "src/app/command/command_line.h"

namespace trireme {

void add_all_bench(CommandLine& bench, AppContext& context);

}  // namespace trireme
