// `trireme accept` measures all nodes and links of a machine and says which ones are not as good as
// the others or as agreed.
#pragma once

#include "src/app/command/command_line.h"

namespace trireme {

void add_accept_command(CommandLine& app, int& exit_code);

}  // namespace trireme
