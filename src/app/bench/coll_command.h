// The command line of `trireme bench coll`: nccl-tests' flags and our own.
#pragma once

#include "src/app/app_context.h"
#include "src/app/command_line.h"

namespace trireme {

void add_coll_bench(CommandLine& bench, AppContext& context);

}  // namespace trireme
