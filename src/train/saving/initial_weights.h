// Loads the weights with which a new run begins from a checkpoint of another one, or from an
// imported model (checkpoint.init_from). Only weights are taken: the optimizer starts without
// history, and the run at step 0.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/checkpoint/step_keys.h"
#include "io/checkpoint/store.h"
#include "src/train/engine/engine.h"

namespace trireme {

// Collective. Returns the step that `path` names, a value of the configuration's `key`, as rank 0
// finds it, without reading more than its manifest. All ranks throw NotFound or DataError if there
// is none.
StepFolder find_initial_step(const char* key, const std::filesystem::path& path,
                             Communicator& world);

// Called on all ranks with a step whose weights a run takes, before more than its manifest is read;
// throws what keeps it from being used. May be empty.
using AdmitStep = std::function<void(const StepFolder&)>;

// Collective. Opens the step for reading. keys: null if none are configured. All ranks throw
// ConfigError that lists the fields of the model that differ, or if the step has adapters instead
// of weights, and PolicyError if it can't be opened.
void open_initial_step(StepFolder& step, const RunConfig& config, StepKeys* keys,
                       const AdmitStep& admit);

// Collective. Replaces the initial values that an engine trains by those of a step, which may be of
// any layout. folder: what checkpoint.init_from names, or a step in it. A step of a folder that
// turns out damaged, or has weights that are not finite, is skipped for the next older one on all
// ranks. Sets `skipped` on rank 0 to the reasons. The other arguments are as above. Returns a line
// for the log that says what was loaded. All ranks also throw DataError if no step is intact.
std::string load_initial_weights(const RunConfig& config, Engine& engine, Communicator& world,
                                 const std::filesystem::path& folder, StepKeys* keys,
                                 const AdmitStep& admit, std::vector<std::string>& skipped);

}  // namespace trireme
