// The parts of a model and how each family names and lays out its parameters: those of Hugging
// Face, so that import and export are plain.
#pragma once

#include <memory>
#include <vector>

#include "src/nn/embedding.h"
#include "src/nn/head.h"
#include "src/nn/layer.h"
#include "src/nn/model_config.h"

namespace trireme {

// Layers 2i and 2i + 1 are block i: attention, then MLP. A pipeline stage will hold a slice.
struct ModelParts {
  Embedding embedding;
  std::vector<std::unique_ptr<Layer>> layers;
  Head head;
};

// Declare the family's parameters in the store, in model order.
ModelParts build_gpt2(const ModelConfig& config, ParameterStore& store);
ModelParts build_llama(const ModelConfig& config, ParameterStore& store);

// Declares parameters, with the initial values that GPT-2 was trained from (Radford et al., 2019):
// normal ones, those of the projections into the residual stream divided by sqrt(2 layers).
class ParameterDeclarer {
 public:
  ParameterDeclarer(const ModelConfig& config, ParameterStore& store)
      : config_(config), store_(store) {}

  // A matrix [rows,columns]; it decays.
  ParameterId matrix(const std::string& name, std::int64_t rows, std::int64_t columns);
  ParameterId joined_matrix(const std::string& name, std::int64_t rows, std::int64_t columns);
  ParameterId residual_matrix(const std::string& name, std::int64_t rows, std::int64_t columns);
  ParameterId ones(const std::string& name, std::int64_t elements);
  ParameterId zeros(const std::string& name, std::int64_t elements);

 private:
  const ModelConfig& config_;
  ParameterStore& store_;
};

// What both families share: the embedding's sizes and the output matrix, tied to it or "lm_head".
void finish_parts(const ModelConfig& config, ParameterDeclarer& declare, ModelParts& parts);

}  // namespace trireme
