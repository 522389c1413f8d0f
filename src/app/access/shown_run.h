// What reports and exports show of a run's configuration and names.
#pragma once

#include "src/report/run_folder.h"

namespace trireme {

// Removes secrets from the run's name, its configuration as text and as values, and from what is
// said about it: a command in launch.on_event may hold a token. The path stays.
void redact_run(RunFolder& run);

}  // namespace trireme
