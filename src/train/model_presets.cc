#include "src/train/model_presets.h"

#include "src/base/config_binder.h"
#include "src/base/error.h"
#include "src/train/run_config.h"

namespace trireme {

const ModelPreset& model_preset(const std::string& name) {
  std::string names;
  for (const ModelPreset& preset : model_presets()) {
    if (preset.name == name) {
      return preset;
    }
    names += fmt::format("{}{}", names.empty() ? "" : ", ", preset.name);
  }
  throw ConfigError(fmt::format("there is no model preset '{}': choose one of {}", name, names));
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
