#pragma once

#include "src/app/command/command_line.h"

namespace trireme {

// Adds `trireme export`.
void add_export_command(CommandLine& app);

}  // namespace trireme
