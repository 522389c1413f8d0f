// The base of a run with adapters (lora.products) is the checkpoint whose weights it keeps frozen
// (checkpoint.init_from). Its own checkpoints hold adapters alone, and record where the base is and
// the digest of its manifest, so that no other weights can take its place.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "io/checkpoint/step_keys.h"
#include "io/checkpoint/store.h"
#include "src/train/saving/initial_weights.h"

namespace trireme {

class Engine;
struct RunConfig;

// Adds the record of a base to the part of a manifest that is reserved for the run ("lora").
void put_base(const StepFolder& base, nlohmann::json& extra);
// Throws ConfigError if a checkpoint has another base than the run, given both parts.
void check_same_base(const nlohmann::json& checkpoint, const nlohmann::json& run);
// Returns whether the step holds adapters instead of weights.
bool has_adapters(const Manifest& manifest);
// Returns the base of a step of adapters, by its record; it is not yet unlocked. Throws NotFound if
// it is gone, and DataError if it has changed or there is no valid record.
StepFolder recorded_base(const StepFolder& step);

// Collective. Loads the frozen weights of all chunks. base: from find_initial_step(). The other
// arguments and the errors are those of load_initial_weights(). Returns a line for the log.
std::string load_base_weights(StepFolder base, const RunConfig& config, Engine& engine,
                              Communicator& world, StepKeys* keys, const AdmitStep& admit);

}  // namespace trireme
