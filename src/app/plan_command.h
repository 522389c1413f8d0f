// `trireme plan` shows the cost of a pipeline schedule, as a table and as an SVG figure.
#pragma once

#include "src/app/command/command_line.h"

namespace trireme {

void add_plan_command(CommandLine& app);

}  // namespace trireme
