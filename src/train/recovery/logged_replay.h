// Replays logged steps of a run: computes them again from a checkpoint, and compares losses and
// gradient norms with metrics.jsonl, bit by bit. Saves nothing and logs no metrics. Collective.
#pragma once

#include <cstdint>

#include "src/train/parts/training_host.h"
#include "src/train/run/run_config.h"

namespace trireme {

// Replays the steps up to `last`, counted from 1, from the newest checkpoint before it, or from the
// seed if there is none. Logs the result. Throws DeviceError if a logged step now has other bits,
// and NotFound if none of these steps was logged or no checkpoint has their data.
void replay_logged(const RunConfig& config, const TrainingHost& host, std::int64_t last);

}  // namespace trireme
