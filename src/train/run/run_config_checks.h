// Makes those checks of a configuration that involve several keys, or more than a key's range.
#pragma once

#include "src/train/run/run_config.h"

namespace trireme {

// Reports contradictions to the binder, and sets values that depend on other keys: data.sequence
// and the schedule's rate and length. Precondition: each key is valid by itself.
void check_together(ConfigBinder& binder, RunConfig& config);

}  // namespace trireme
