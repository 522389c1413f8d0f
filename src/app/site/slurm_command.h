// `trireme slurm render|submit`: job scripts from a run's configuration and a site's profile.
#pragma once

#include <CLI/CLI.hpp>

namespace trireme {

void add_slurm_command(CLI::App& app);

}  // namespace trireme
