// Checks what a configuration says about training that begins with the weights of another model.
#pragma once

#include "src/train/run/run_config.h"

namespace trireme {

// Reports contradictions to the binder: adapters and kept zeros need weights to begin with, and do
// not go with everything else.
void check_fine_tuning(ConfigBinder& binder, const RunConfig& config);

}  // namespace trireme
