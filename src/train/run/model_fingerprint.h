// The part of a config fingerprint (fingerprint.h) that describes the model: the fields "model.*",
// "lora.*" and "train.frozen". Pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "src/nn/model_config.h"

namespace trireme {

// Returns the fields "model.*".
nlohmann::json model_fingerprint(const ModelConfig& model);

// Adds the fields that say what is trained, if it is not the whole model.
void put_fine_tuning(const ModelConfig& model, nlohmann::json& fields);

// Reads all of them, from which `generate` and `eval` build the model. Throws DataError if one is
// missing or invalid.
ModelConfig model_from_fingerprint(const nlohmann::json& fingerprint);

}  // namespace trireme
