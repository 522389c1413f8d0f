// `trireme archive` bundles what a vendor needs to understand a run or a study, without secrets.
#pragma once

#include "src/app/command/command_line.h"

namespace trireme {

void add_archive_command(CommandLine& app);

}  // namespace trireme
