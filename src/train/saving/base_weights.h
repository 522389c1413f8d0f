// The base of a run with adapters (lora.products) or with frozen modules (train.frozen) is the
// checkpoint whose weights it keeps (checkpoint.init_from). Its own checkpoints hold what it trains
// alone, and record where the base is and the digest of its manifest, so that no other weights can
// take its place.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "io/checkpoint/step_keys.h"
#include "io/checkpoint/store.h"
#include "src/train/saving/initial_weights.h"

namespace trireme {

class Engine;
struct RunConfig;

// The fields of a manifest's part for the run that hold the record of a base.
inline constexpr const char* kBaseOfAdapters = "lora";
inline constexpr const char* kBaseOfModules = "frozen";

// Adds the record of a base to the part of a manifest that is reserved for the run.
void put_base(const StepFolder& base, nlohmann::json& extra, const char* field = kBaseOfAdapters);
// Throws ConfigError if a checkpoint has another base than the run, given both parts.
void check_same_base(const nlohmann::json& checkpoint, const nlohmann::json& run);
// Returns whether the step holds adapters instead of weights.
bool has_adapters(const Manifest& manifest);
// Returns whether it holds adapters, or the weights without the frozen ones.
bool needs_base(const Manifest& manifest);
// Returns the base of a step that needs one, by its record; it is not yet unlocked. Throws NotFound
// if it is gone, and DataError if it has changed or there is no valid record.
StepFolder recorded_base(const StepFolder& step);

// Collective. Loads the frozen weights of all chunks. base: from find_initial_step(). The other
// arguments and the errors are those of load_initial_weights(). Returns a line for the log.
std::string load_base_weights(StepFolder base, const RunConfig& config, Engine& engine,
                              Communicator& world, StepKeys* keys, const AdmitStep& admit);

}  // namespace trireme
