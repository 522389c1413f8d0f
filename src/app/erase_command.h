// trireme erase: erases a checkpoint or a dataset and certifies that.
#pragma once

#include "src/app/command/audit_trail.h"
#include "src/app/command/command_line.h"

namespace trireme {

void add_erase_command(CommandLine& app, AuditTrail& audit);

}  // namespace trireme
