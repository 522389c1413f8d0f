// The command lines of `trireme bench p2p` and `trireme bench pairs`.
#pragma once

#include <CLI/CLI.hpp>

#include "src/app/app_context.h"

namespace trireme {

void add_p2p_bench(CLI::App& bench, AppContext& context);
void add_pairs_bench(CLI::App& bench, AppContext& context);

}  // namespace trireme
