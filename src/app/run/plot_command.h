// `trireme plot` draws the losses of runs, read from their metrics.jsonl, as an SVG figure.
#pragma once

#include "src/app/command/command_line.h"

namespace trireme {

void add_plot_command(CommandLine& app);

}  // namespace trireme
