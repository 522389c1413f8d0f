// Writes the `model:` part of a run's configuration, for a run that begins with the weights of an
// imported model.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "src/nn/model_config.h"

namespace trireme {

// model: complete. Keys with their default value are left out.
nlohmann::ordered_json model_section(const ModelConfig& model);
// Returns lines of YAML, "model:" first. section: from model_section().
std::string model_yaml(const nlohmann::ordered_json& section);

}  // namespace trireme
