// Adds `trireme bench mem` to the command line.
#pragma once

#include "src/app/command/app_context.h"
#include "src/app/command/command_line.h"

namespace trireme {

void add_mem_bench(CommandLine& bench, AppContext& context);

}  // namespace trireme
