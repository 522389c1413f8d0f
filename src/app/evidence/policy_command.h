// `trireme policy check`: says what the policy of the site would allow a run, and why.
#pragma once

#include "src/app/command/command_line.h"
#include "src/policy/access.h"

namespace trireme {

// exit_code: 77 if something would be refused.
void add_policy_command(CommandLine& app, const AccessSource& access, int& exit_code);

}  // namespace trireme
