// `trireme bench step|loader|ckpt`: measures the machine against its own ceilings.
#pragma once

#include <CLI/CLI.hpp>

#include "src/app/app_context.h"

namespace trireme {

void add_bench_command(CLI::App& app, AppContext& context);

}  // namespace trireme
