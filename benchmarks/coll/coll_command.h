// Adds the command line of `trireme bench coll`, which has the flags of nccl-tests and some of its
// own.
#pragma once

#include "src/app/command/app_context.h"
#include "src/app/command/command_line.h"

namespace trireme {

void add_coll_bench(CommandLine& bench, AppContext& context);

}  // namespace trireme
