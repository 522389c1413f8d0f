// `trireme bench step|loader|ckpt|coll|p2p|pairs`: measures the machine against its own ceilings,
// its network against a peer.
#pragma once

#include "src/app/app_context.h"
#include "src/app/command_line.h"

namespace trireme {

void add_bench_command(CommandLine& app, AppContext& context);

}  // namespace trireme
