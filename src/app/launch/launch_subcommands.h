// Declares the subcommands of `trireme launch`: the report, and the processes that a launch starts
// by itself.
#pragma once

#include "src/app/command/command_line.h"

namespace trireme {

void add_report_command(CommandLine& launch);
void add_agent_command(CommandLine& launch, int& exit_code);
void add_deputy_command(CommandLine& launch, int& exit_code);
void add_rank_command(CommandLine& launch);

}  // namespace trireme
