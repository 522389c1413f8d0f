// `trireme slurm render|submit`: job scripts from a run's configuration and a site's profile.
#pragma once

#include "src/app/command_line.h"

namespace trireme {

void add_slurm_command(CommandLine& app);

}  // namespace trireme
