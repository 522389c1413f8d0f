// What a start says of a run that an earlier start has finished.
#pragma once

#include "src/train/run/run_config.h"
#include "src/train/run/run_directory.h"

namespace trireme {

// Throws ConfigError that names each differing key if the last checkpoint belongs to another run
// than the configuration describes: nothing would be trained, and a script would take the old
// weights for new ones. Does not open the data, so that other data goes unnoticed. The steps and
// the length of the schedule, which a longer run changes, may differ.
void check_same_as_finished(const RunConfig& config, const RunDirectory& run);

// Prints up to which step it is finished, and how to train longer.
void print_finished(const RunConfig& config, const RunDirectory& run);

}  // namespace trireme
