// Checks of a configuration that need several keys, or more than the range of one.
#pragma once

#include "src/train/run/run_config.h"

namespace trireme {

// Reports contradictions to the binder, and fills in what depends on other keys: data.sequence and
// the schedule's rate and length. Precondition: each key is valid by itself.
void check_together(ConfigBinder& binder, RunConfig& config);

}  // namespace trireme
