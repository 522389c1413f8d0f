// Builds the parts of a model, or of a slice of one. Each family names and lays out its parameters
// as Hugging Face does, so that import and export need no conversion. Used by Model's constructor.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "src/nn/embedding.h"
#include "src/nn/head.h"
#include "src/nn/layer.h"
#include "src/nn/linear.h"
#include "src/nn/model_slice.h"
#include "src/nn/parameter_declarer.h"

namespace trireme {

// PartParameters is the range [first, end) of a part's parameters.
struct PartParameters {
  ParameterId first = 0;
  ParameterId end = 0;
};

struct ModelParts {
  std::optional<Embedding> embedding;          // only in the first slice
  std::vector<std::unique_ptr<Layer>> layers;  // residual layers, or recomputed pairs of them
  std::optional<Head> head;                    // only in the last slice
  // The parameters that each part reads. Those of a head that is tied to an embedding of the same
  // slice are only its norm's.
  PartParameters embedding_parameters;
  std::vector<PartParameters> layer_parameters;
  PartParameters head_parameters;
  // The number of layers, from the first on, that backward does not pass, because all parameters up
  // to them are frozen; 0 if the slice does not begin with the embedding.
  std::size_t still_layers = 0;
  // In the first slice: its embedding is tied to the head of another slice, which trains the
  // matrix.
  bool embedding_is_copy = false;
  // In the last slice of such a model: adds the embedding's part to the gradient of the output
  // matrix.
  std::optional<Embedding> tied_gradient;
};

// Builds the parts of one model family. The calls must come in model order, because they declare
// parameters.
class FamilyBuilder {
 public:
  virtual ~FamilyBuilder() = default;
  // Declares the learned positions; returns kNoParameter if the model has none.
  virtual ParameterId positions() = 0;
  virtual std::unique_ptr<Layer> attention_layer(std::int64_t block) = 0;
  virtual std::unique_ptr<Layer> mlp_layer(std::int64_t block) = 0;
  virtual Norm final_norm() = 0;
};

// Declares the slice's parameters in the store, in model order.
ModelParts build_parts(const ModelConfig& config, const ModelSlice& slice, ParameterStore& store);

std::unique_ptr<FamilyBuilder> gpt2_builder(const ModelConfig& config, const ModelSlice& slice,
                                            ParameterStore& store);
std::unique_ptr<FamilyBuilder> llama_builder(const ModelConfig& config, const ModelSlice& slice,
                                             ParameterStore& store);

}  // namespace trireme
