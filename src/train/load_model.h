// A trained model out of a checkpoint, ready to evaluate or generate; no optimizer, no MPI.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/nn/model.h"
#include "src/nn/parameter.h"
#include "src/train/engine/training_state.h"
#include "src/train/start/tokenizer_identity.h"

namespace trireme {

struct LoadedModel {
  ModelConfig config;
  std::unique_ptr<ParameterStore> parameters;  // before the model, which refers to it
  std::unique_ptr<Model> model;
  std::int64_t step = 0;
  std::int64_t sequence = 0;         // tokens a sample it was trained on
  TokenizerIdentity tokenizer;       // of its training data
  DType compute = DType::f32;        // precision of activations and products
  std::vector<std::string> skipped;  // newer steps that were not whole, and why
};

// "bf16" or "fp32"; nothing for "".
std::optional<DType> asked_precision(std::string_view word);

// directory: a step's folder, or a checkpoint folder, which means its newest valid step. NotFound
// if there is none, DataError if none is valid; ConfigError if the average of the weights is asked
// for where the run kept none. compute: bf16 or f32; nothing: as it was trained.
LoadedModel load_model(const std::filesystem::path& directory, DeviceContext& context,
                       std::optional<DType> compute, Weights weights = Weights::latest);

}  // namespace trireme
