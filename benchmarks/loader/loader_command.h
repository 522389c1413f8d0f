// Adds the command line of `trireme bench loader`.
#pragma once

#include "src/app/command/app_context.h"
#include "src/app/command/command_line.h"

namespace trireme {

void add_loader_bench(CommandLine& bench, AppContext& context);

}  // namespace trireme
