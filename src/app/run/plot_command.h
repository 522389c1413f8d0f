// `trireme plot` draws the losses of runs, read from their metrics.jsonl, as an SVG figure.
#pragma once

#include "src/app/command/command_line.h"
#include "src/policy/access.h"

namespace trireme {

// access: asked before encrypted logs of a run are opened; empty: nobody is asked.
void add_plot_command(CommandLine& app, const AccessSource& access = {});

}  // namespace trireme
