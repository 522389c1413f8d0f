#include "src/train/load_model.h"

#include <nlohmann/json.hpp>

#include "io/checkpoint/reader.h"
#include "io/checkpoint/store.h"
#include "src/train/engine/training_state.h"
#include "src/train/run/fingerprint.h"

namespace trireme {

std::optional<DType> asked_precision(std::string_view word) {
  return word.empty() ? std::nullopt : std::optional(word == "bf16" ? DType::bf16 : DType::f32);
}

LoadedModel load_model(const std::filesystem::path& directory, Pool& pool,
                       std::optional<DType> compute) {
  std::vector<std::string> skipped;
  const StepFolder step = find_step(directory, skipped);
  const CheckpointReader reader(step.path, *step.manifest);
  const CheckpointMeta& meta = reader.manifest().meta;

  LoadedModel loaded;
  loaded.config = model_from_fingerprint(*meta.config);
  loaded.step = meta.step;
  loaded.sequence = meta.config->value("data.sequence", loaded.config.context);
  loaded.tokenizer = tokenizer_from_extra(*meta.extra);
  const bool trained_in_fp32 = meta.config->value("train.precision", std::string()) == "fp32";
  loaded.compute = compute.value_or(trained_in_fp32 ? DType::f32 : DType::bf16);
  loaded.skipped = skipped;
  loaded.parameters = std::make_unique<ParameterStore>(pool, loaded.compute);
  loaded.model = std::make_unique<Model>(loaded.config, *loaded.parameters);
  loaded.parameters->allocate();
  MasterWeights masters(*loaded.parameters);
  reader.load(parameters_to_load(masters));
  masters.refresh_computes();
  return loaded;
}

}  // namespace trireme
