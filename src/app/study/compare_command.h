// `trireme compare` says whether a measurement is slower than an earlier one.
#pragma once

#include "src/app/command/command_line.h"

namespace trireme {

void add_compare_command(CommandLine& app, int& exit_code);

}  // namespace trireme
