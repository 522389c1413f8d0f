// `trireme keys`: makes keys, and changes for whom checkpoints and datasets are encrypted.
#pragma once

#include "src/app/command/command_line.h"

namespace trireme {

void add_keys_command(CommandLine& app);

}  // namespace trireme
