// `trireme plan`: what a pipeline schedule costs, as a table and as an SVG figure.
#pragma once

#include <CLI/CLI.hpp>

namespace trireme {

void add_plan_command(CLI::App& app);

}  // namespace trireme
