// Adds the command lines of `trireme bench p2p` and `trireme bench pairs`.
#pragma once

#include "src/app/command/app_context.h"
#include "src/app/command/command_line.h"

namespace trireme {

void add_p2p_bench(CommandLine& bench, AppContext& context);
void add_pairs_bench(CommandLine& bench, AppContext& context);

}  // namespace trireme
