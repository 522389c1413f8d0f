// Loads a trained model from a checkpoint, ready to evaluate or generate, without optimizer. The
// caller owns it; one thread.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/checkpoint/step_keys.h"
#include "mpi/communicator.h"
#include "src/nn/model.h"
#include "src/nn/packed_weights.h"
#include "src/nn/parameter.h"
#include "src/train/engine/training_state.h"
#include "src/train/start/tokenizer_identity.h"
#include "src/train/text/text_origin.h"

namespace trireme {

struct LoadedModel {
  ModelConfig config;
  std::unique_ptr<ParameterStore> parameters;  // declared before `model`, which refers to it
  std::unique_ptr<Model> model;
  std::unique_ptr<PackedWeights> packed;  // for Run::packed; null if no weights are packed
  std::int64_t step = 0;
  std::string manifest_sha256;       // of the step's manifest
  std::int64_t sequence = 0;         // tokens per sample in its training
  bool separates_documents = false;  // as in LoaderPlan, in its training
  TokenizerIdentity tokenizer;       // of its training data
  TextOrigin text;
  DType compute = DType::f32;        // precision of activations and products
  bool as_trained = true;            // whether it is the one that is chosen unless asked for
  std::vector<std::string> skipped;  // on rank 0: newer steps that are damaged, and why
};

// word: "bf16", "fp16", "fp32", or "", for which it returns nothing.
std::optional<DType> asked_precision(std::string_view word);

// Throws NotFound if the folder of a checkpoint is missing. Call it before looking for a device: a
// wrong path is the more frequent mistake.
void check_exists(const std::filesystem::path& directory);

// directory: a step's folder, or a checkpoint folder, which stands for its newest valid step: a
// step whose damage shows only when it is read, or whose weights contain NaN or infinity, is
// skipped like one that is not complete. compute: if empty, as it was trained, or f32 instead of
// f16 on the CPU. The context outlives the model. Throws NotFound if there is no step, DataError if
// none is valid, and ConfigError if weights are the average and the run kept none, or if compute is
// f16 on the CPU. keys: those that open encrypted checkpoints; throws
// PolicyError if none of them does. packed_bits: 8 or 4 to pack the matrices, from the weights as
// they are stored, which only works on the CPU (else ConfigError); 0 not to.
LoadedModel load_model(const std::filesystem::path& directory, DeviceContext& context,
                       std::optional<DType> compute, Weights weights = Weights::latest,
                       const KeyOptions& keys = {}, int packed_bits = 0);
// Loads the same step on all ranks; collective.
LoadedModel load_model(const std::filesystem::path& directory, Communicator& world,
                       DeviceContext& context, std::optional<DType> compute, Weights weights,
                       StepKeys& keys, int packed_bits = 0);

}  // namespace trireme
