// The parts of a model, or of a slice of one, and how each family names and lays out its
// parameters: those of Hugging Face, so that import and export are plain.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "src/nn/embedding.h"
#include "src/nn/head.h"
#include "src/nn/layer.h"
#include "src/nn/model_slice.h"

namespace trireme {

// The parameters [first, end) of a part.
struct PartParameters {
  ParameterId first = 0;
  ParameterId end = 0;
};

struct ModelParts {
  std::optional<Embedding> embedding;          // of the first slice
  std::vector<std::unique_ptr<Layer>> layers;  // residual layers, or recomputed pairs of them
  std::optional<Head> head;                    // of the last slice
  // What each part reads; of a tied head with the embedding beside it, the norm's alone.
  PartParameters embedding_parameters;
  std::vector<PartParameters> layer_parameters;
  PartParameters head_parameters;
  // Of the first slice, where the embedding is tied to the head of another: that one trains it.
  bool embedding_is_copy = false;
  // Of the last slice of the same: adds the embedding's part to the gradient of the output matrix.
  std::optional<Embedding> tied_gradient;
};

// Declares parameters, with the initial values that GPT-2 was trained from (Radford et al., 2019):
// normal ones, those of the projections into the residual stream divided by sqrt(2 layers).
class ParameterDeclarer {
 public:
  ParameterDeclarer(const ModelConfig& config, const ModelSlice& slice, ParameterStore& store)
      : config_(config),
        share_(tensor_share(config, slice.tensor_rank, slice.tensor_ranks)),
        store_(store) {}

  const TensorShare& share() const { return share_; }

  // Matrices decay. What is a rank's own is primary; what all hold alike is rank 0's.
  ParameterId matrix(const std::string& name, const Place& place);
  ParameterId joined_matrix(const std::string& name, const Place& place);
  ParameterId residual_matrix(const std::string& name, const Place& place);
  // Vectors.
  ParameterId ones(const std::string& name, std::int64_t elements);
  ParameterId zeros(const std::string& name, std::int64_t elements);
  ParameterId zeros(const std::string& name, const Place& place);
  // A matrix that all ranks of the group hold alike.
  ParameterId common_matrix(const std::string& name, const Shape& shape);
  // The rows of the shared vocabulary, [V,C].
  ParameterId vocabulary_matrix(const std::string& name, bool trained);

  // Columns of packed queries, keys and values (GPT-2) that this rank holds.
  std::vector<IndexRange> packed_columns() const;
  // Rows of the queries', or keys' and values', own matrices.
  IndexRange query_rows() const { return rows_of(share_.heads); }
  IndexRange key_rows() const { return rows_of(share_.kv_heads); }
  // Whether this is the rank that saves its key-value heads.
  bool keeps_keys() const { return share_.rank % share_.kv_copies == 0; }

 private:
  IndexRange rows_of(IndexRange heads) const {
    return {heads.first * config_.head_dim, heads.count * config_.head_dim};
  }
  Place common(const Shape& shape) const;

  const ModelConfig& config_;
  TensorShare share_;
  ParameterStore& store_;
};

// How one family makes its parts; called in model order.
class FamilyBuilder {
 public:
  virtual ~FamilyBuilder() = default;
  virtual std::string token_name() const = 0;
  // Declares learned positions, if the family has any.
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
