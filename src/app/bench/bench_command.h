// `trireme bench step|loader|ckpt|coll|p2p|pairs`: measures the machine against its own ceilings,
// its network against a peer.
#pragma once

#include <CLI/CLI.hpp>

#include "src/app/app_context.h"

namespace trireme {

void add_bench_command(CLI::App& app, AppContext& context);

}  // namespace trireme
