// Makes those checks of a configuration that involve several keys, or more than a key's range.
#pragma once

#include "src/device/device.h"
#include "src/train/run/run_config.h"

namespace trireme {

// Reports contradictions to the binder, and sets values that depend on other keys: data.sequence
// and the schedule's rate and length. Precondition: each key is valid by itself.
void check_together(ConfigBinder& binder, RunConfig& config);

// Throws ConfigError if a size of the model or the batch does not suit products in fp8, if the run
// has them.
void check_fp8_shapes(const RunConfig& config, int tp);

// Throws ConfigError if cuDNN lacks attention for the model's heads, if it shall compute that.
void check_attention_shapes(const RunConfig& config);

// Throws ConfigError if the run's precision, its products or its attention are not available on the
// device.
void check_precision(const RunConfig& config, Device device);

}  // namespace trireme
