// Says what holds the memory of a device when it runs out in a step.
#pragma once

#include <string>

#include "src/train/engine/train_step.h"

namespace trireme {

// Returns what each pool of the engine's rank has taken and hands out.
std::string held_by_pools(const Engine& engine);

// Calls step.run(counters, signal). Adds what the pools hold to the message of a ResourceError.
StepResult run_step(TrainStep& step, TrainingCounters& counters, int signal, const Engine& engine);

}  // namespace trireme
