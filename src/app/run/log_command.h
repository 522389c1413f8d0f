// `trireme log` prints files that a run has written, in plain.
#pragma once

#include "src/app/command/command_line.h"
#include "src/policy/access.h"

namespace trireme {

void add_log_command(CommandLine& app, const AccessSource& access);

}  // namespace trireme
