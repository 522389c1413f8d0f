// `trireme registry add|list|show|path|promote|rollback|check`: which versions of a model there
// are, and which of them is in use.
#pragma once

#include "src/app/command/command_line.h"
#include "src/policy/access.h"

namespace trireme {

void add_registry_command(CommandLine& app, const AccessSource& access, int& exit_code);

}  // namespace trireme
