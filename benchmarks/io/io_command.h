// Adds the command line of `trireme bench io`, whose short options are those of IOR and mdtest.
#pragma once

#include "src/app/command/app_context.h"
#include "src/app/command/command_line.h"

namespace trireme {

void add_io_bench(CommandLine& bench, AppContext& context);

}  // namespace trireme
