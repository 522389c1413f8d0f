// `trireme health`: whether this node is fit to train, in under 30 s, on one line.
#pragma once

#include <CLI/CLI.hpp>

namespace trireme {

void add_health_command(CLI::App& app, int& exit_code);

}  // namespace trireme
