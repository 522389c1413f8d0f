// `trireme plot`: the losses of runs, read from their metrics.jsonl, as an SVG figure.
#pragma once

#include <CLI/CLI.hpp>

namespace trireme {

void add_plot_command(CLI::App& app);

}  // namespace trireme
