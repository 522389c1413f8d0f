// The model presets of configs/model/, built into the program.
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

// In name order.
const std::vector<ModelPreset>& model_presets();
// origin: where the name was given. ConfigError that lists the presets there are.
const ModelPreset& model_preset(const std::string& name, const std::string& origin);
// The complete and valid model configuration of a preset.
ModelConfig preset_model_config(const std::string& name);

}  // namespace trireme
