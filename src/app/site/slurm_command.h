// `trireme slurm render|submit` makes job scripts from a run's configuration and a site profile.
#pragma once

#include "src/app/command/command_line.h"

namespace trireme {

void add_slurm_command(CommandLine& app);

}  // namespace trireme
