// The subcommands of `trireme launch`: the report, and the processes that a launch starts by
// itself.
#pragma once

#include <CLI/CLI.hpp>

namespace trireme {

void add_report_command(CLI::App& launch);
void add_agent_command(CLI::App& launch, int& exit_code);
void add_deputy_command(CLI::App& launch, int& exit_code);
void add_rank_command(CLI::App& launch);

}  // namespace trireme
