// Loads the weights with which a new run begins from a checkpoint of another one, or from an
// imported model (checkpoint.init_from). Only weights are taken: the optimizer starts without
// history, and the run at step 0.
#pragma once

#include <functional>
#include <string>

#include "io/checkpoint/step_keys.h"
#include "src/train/engine/engine.h"

namespace trireme {

// Collective. Replaces the initial values of an engine that was initialized. The checkpoint may be
// of any layout. keys: null if none are configured. Returns a line for the log that says what was
// loaded. All ranks throw NotFound if there is no checkpoint, ConfigError that lists the fields of
// the model that differ, DataError for damage and for weights that are not finite, and PolicyError
// if the checkpoint can't be opened. admit: called with the manifest on all ranks before anything
// else is read; throws what keeps it from being used.
std::string load_initial_weights(const RunConfig& config, Engine& engine, Communicator& world,
                                 StepKeys* keys,
                                 const std::function<void(const Manifest&)>& admit = {});

}  // namespace trireme
