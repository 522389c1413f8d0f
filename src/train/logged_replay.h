// A replay of what a run has logged: computes steps again from a checkpoint and compares their
// losses and gradient norms, bit by bit, with metrics.jsonl. Saves nothing, logs no metrics.
// Collective.
#pragma once

#include <cstdint>

#include "src/train/training.h"

namespace trireme {

// Up to step `last`, from the newest checkpoint before it; from the seed if there is none. The
// first step is done when 1 is the last. Says on stderr what came of it. DeviceError if a logged
// step has other bits now; NotFound if none of these steps was logged.
void replay_logged(const RunConfig& config, const TrainingHost& host, std::int64_t last);

}  // namespace trireme
