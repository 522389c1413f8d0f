// `trireme keys`: makes keys, and changes for whom checkpoints and datasets are encrypted.
#pragma once

#include "src/app/command/command_line.h"
#include "src/policy/access.h"

namespace trireme {

// access: says what the policy of the site allows.
void add_keys_command(CommandLine& app, const AccessSource& access);

}  // namespace trireme
