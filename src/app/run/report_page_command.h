#pragma once

#include "src/app/command/command_line.h"

namespace trireme {

// Adds `trireme report`.
void add_report_page_command(CommandLine& app);

}  // namespace trireme
