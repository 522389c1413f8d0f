#include "src/train/run/model_presets.h"

#include <fmt/format.h>

#include "src/base/config_binder.h"
#include "src/base/error.h"
#include "src/train/run/run_config.h"

namespace trireme {

const ModelPreset& model_preset(const std::string& name, const std::string& origin) {
  std::vector<std::string> names;
  for (const ModelPreset& preset : model_presets()) {
    if (preset.name == name) {
      return preset;
    }
    names.emplace_back(preset.name);
  }
  const std::string nearest = nearest_word(name, names);
  throw ConfigError(fmt::format("{}: model.preset: unknown preset '{}'; the presets are {}{}",
                                origin, name, fmt::join(names, ", "),
                                nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest)));
}

ModelConfig preset_model_config(const std::string& name) {
  ConfigBinder binder;
  binder.add_arguments({"model.preset=" + name});
  ModelConfig model;
  bind(binder, model);
  binder.finish();
  model.complete();
  model.validate();
  return model;
}

}  // namespace trireme
