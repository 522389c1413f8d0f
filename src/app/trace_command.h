// `trireme trace`: where the time of traced steps went.
#pragma once

#include <CLI/CLI.hpp>

namespace trireme {

void add_trace_command(CLI::App& app);

}  // namespace trireme
