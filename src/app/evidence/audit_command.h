// `trireme audit` makes keys, and shows and checks audit logs (docs/evidence.md).
#pragma once

#include "src/app/command/command_line.h"

namespace trireme {

void add_audit_command(CommandLine& app, int& exit_code);

}  // namespace trireme
