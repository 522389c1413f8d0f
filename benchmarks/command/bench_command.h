// `trireme bench step|pipeline|loader|ckpt|coll|p2p|pairs` compares the machine with ceilings that
// are measured in the same run, and its communication with MPI.
#pragma once

#include "src/app/command/app_context.h"
#include "src/app/command/command_line.h"

namespace trireme {

void add_bench_command(CommandLine& app, AppContext& context);

}  // namespace trireme
