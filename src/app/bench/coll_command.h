// The command line of `trireme bench coll`: nccl-tests' flags and our own.
#pragma once

#include <CLI/CLI.hpp>

#include "src/app/app_context.h"

namespace trireme {

void add_coll_bench(CLI::App& bench, AppContext& context);

}  // namespace trireme
