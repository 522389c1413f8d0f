// trireme launch: supervises a run: starts its ranks, watches them, relaunches what breaks.
#pragma once

#include <CLI/CLI.hpp>

namespace trireme {

void add_launch_command(CLI::App& app, int& exit_code);

}  // namespace trireme
