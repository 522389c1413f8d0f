// trireme verify: checks a checkpoint, a run or a dataset, and what it was made from, against
// signed statements, or a certificate of deletion. `exit_code` is set to 65, 66, 74 or 77 if
// something is wrong or missing.
#pragma once

#include "src/app/command/command_line.h"
#include "src/policy/access.h"

namespace trireme {

// access: says what the policy of the site allows.
void add_verify_command(CommandLine& app, const AccessSource& access, int& exit_code);

}  // namespace trireme
