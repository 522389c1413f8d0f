// trireme erase: erases a checkpoint or a dataset and certifies that.
#pragma once

#include "src/app/command/audit_trail.h"
#include "src/app/command/command_line.h"
#include "src/policy/access.h"

namespace trireme {

// access: says what the policy of the site allows.
void add_erase_command(CommandLine& app, AuditTrail& audit, const AccessSource& access);

}  // namespace trireme
