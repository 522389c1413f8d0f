// Finds the model presets of configs/model/, which are compiled into the program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/nn/model_config.h"

namespace trireme {

struct ModelPreset {
  std::string_view name;  // "gpt2-124m"
  std::string_view yaml;
};

// Returns all presets, sorted by name.
const std::vector<ModelPreset>& model_presets();
// Returns the preset of that name. `origin` says where the name was given. Throws ConfigError that
// lists the presets if there is no such preset.
const ModelPreset& model_preset(const std::string& name, const std::string& origin);
// Returns a preset's model configuration, complete and validated.
ModelConfig preset_model_config(const std::string& name);

}  // namespace trireme
