#include "src/train/load_model.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/load/checkpoint_loader.h"
#include "io/checkpoint/names.h"
#include "io/checkpoint/store.h"
#include "src/base/json_fields.h"
#include "src/nn/model_size.h"
#include "src/train/engine/training_state.h"
#include "src/train/run/fingerprint.h"

namespace trireme {
namespace {

DType trained_precision(const nlohmann::json& config) {
  if (!config.contains("train.precision")) {  // written by other programs
    return DType::bf16;
  }
  const std::string& word = text_field(config, "train.precision");
  if (word != "bf16" && word != "fp32") {
    throw DataError(fmt::format("field 'train.precision' is '{}', not bf16 or fp32", word));
  }
  return word == "fp32" ? DType::f32 : DType::bf16;
}

// Reads the manifest's description of the model.
void read_meta(const CheckpointMeta& meta, LoadedModel& loaded) {
  const nlohmann::json& config = *meta.config;
  loaded.config = model_from_fingerprint(config);
  loaded.step = meta.step;
  loaded.sequence = config.contains("data.sequence")
                        ? count_field(config, "data.sequence", 1, loaded.config.context)
                        : loaded.config.context;
  loaded.tokenizer = tokenizer_from_extra(*meta.extra);
  check_tokenizer(loaded.tokenizer, loaded.config.vocab);
  loaded.compute = trained_precision(config);
}

// Called before the model is declared, which takes memory for every layer.
void check_count(const Manifest& manifest, const ModelConfig& config) {
  const std::int64_t claimed = parameter_count(config);
  std::int64_t stored = 0;
  for (const StoredTensor& tensor : manifest.tensors) {
    stored += tensor.name.starts_with("optimizer.") ? 0 : tensor.shape.elements();
    if (stored >= claimed) {
      return;
    }
  }
  throw DataError(
      fmt::format("its model has {} parameters, but only {} are stored", claimed, stored));
}

// Called before memory is allocated for the weights.
void check_shapes(const Manifest& manifest, const ParameterStore& store, Weights weights) {
  const std::string prefix = weights == Weights::average ? fmt::format("{}.", kAverageName) : "";
  std::vector<TensorBlock> blocks;
  for (const Parameter& p : store.all()) {
    const Shape& shape = p.place.whole;
    blocks.push_back(
        {prefix + p.name, shape, Extent::whole(shape), {nullptr, shape.elements(), DType::f32}});
  }
  if (const auto wrong = mismatches(manifest, blocks); !wrong.empty()) {
    throw DataError(
        fmt::format("its tensors do not match its model:\n  {}", fmt::join(wrong, "\n  ")));
  }
}

}  // namespace

std::optional<DType> asked_precision(std::string_view word) {
  return word.empty() ? std::nullopt : std::optional(word == "bf16" ? DType::bf16 : DType::f32);
}

LoadedModel load_model(const std::filesystem::path& directory, DeviceContext& context,
                       std::optional<DType> compute, Weights weights) {
  LoadedModel loaded;
  const StepFolder step = find_step(directory, loaded.skipped);
  const Manifest& manifest = *step.manifest;
  try {
    if (weights == Weights::average && !has_average(*manifest.meta.config)) {
      throw ConfigError(
          fmt::format("{} holds no moving average of the weights, because it was trained without "
                      "optimizer.ema: omit --ema",
                      step.path.string()));
    }
    read_meta(manifest.meta, loaded);
    check_count(manifest, loaded.config);
    loaded.compute = compute.value_or(loaded.compute);
    loaded.parameters = std::make_unique<ParameterStore>(context, loaded.compute);
    loaded.model = std::make_unique<Model>(loaded.config, *loaded.parameters);
    check_shapes(manifest, *loaded.parameters, weights);
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", (step.path / kManifestName).string(), error.what()));
  }
  loaded.parameters->allocate();
  MasterWeights masters(*loaded.parameters);
  load_step(step.path, manifest, parameters_to_load(masters, weights));
  masters.refresh_working_copies();
  return loaded;
}

}  // namespace trireme
