// Adds the command line of `trireme bench ckpt`.
#pragma once

#include "src/app/command/app_context.h"
#include "src/app/command/command_line.h"

namespace trireme {

void add_ckpt_bench(CommandLine& bench, AppContext& context);

}  // namespace trireme
