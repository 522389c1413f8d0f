#pragma once

#include "src/app/command/command_line.h"
#include "src/policy/access.h"

namespace trireme {

// Adds `trireme report`.
// access: asked before encrypted logs of a run are opened; empty: nobody is asked.
void add_report_page_command(CommandLine& app, const AccessSource& access = {});

}  // namespace trireme
