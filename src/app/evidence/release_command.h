// `trireme release request|sign|show`: lets several people agree that a checkpoint may be exported.
#pragma once

#include "src/app/command/command_line.h"

namespace trireme {

void add_release_command(CommandLine& app);

}  // namespace trireme
