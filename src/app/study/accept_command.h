// `trireme accept` measures all nodes and links of a machine and says which ones are not as good as
// the others or as agreed.
#pragma once

#include "src/app/command/command_line.h"
#include "src/app/study/measure_check.h"

namespace trireme {

// check: of the measures in a profile; measure_problem(), for example.
void add_accept_command(CommandLine& app, int& exit_code, UsageCheck check);

}  // namespace trireme
