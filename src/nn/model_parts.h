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
  // In the first slice: its embedding is tied to the head of another slice, which trains the
  // matrix.
  bool embedding_is_copy = false;
  // In the last slice of such a model: adds the embedding's part to the gradient of the output
  // matrix.
  std::optional<Embedding> tied_gradient;
};

// AdaptedWeight is a part of a Linear's weight that can have an adapter.
struct AdaptedWeight {
  std::string module;   // Hugging Face's name, such as model.layers.0.self_attn.q_proj
  std::string product;  // as in lora_products()
  Place place;          // of the weight
};

// Declares parameters, with the initial values of GPT-2 (Radford et al., 2019): normal ones,
// divided by sqrt(2 layers) in the projections into the residual stream. A parameter that all ranks
// of a group hold alike is primary on rank 0; what one rank alone holds is primary there. Beside
// adapters, all other parameters are frozen.
class ParameterDeclarer {
 public:
  ParameterDeclarer(const ModelConfig& config, const ModelSlice& slice, ParameterStore& store)
      : config_(config),
        share_(tensor_share(config, slice.tensor_rank, slice.tensor_ranks)),
        store_(store) {}

  const TensorShare& share() const { return share_; }

  // Declare matrices in the layers, to which weight decay applies.
  ParameterId matrix(const std::string& name, const Place& place);
  ParameterId joined_matrix(const std::string& name, const Place& place);
  ParameterId residual_matrix(const std::string& name, const Place& place);
  // Declare vectors, to which it does not apply. Without a place, all ranks hold them alike.
  ParameterId ones(const std::string& name, std::int64_t elements);
  ParameterId zeros(const std::string& name, std::int64_t elements);
  ParameterId zeros(const std::string& name, const Place& place);
  ParameterId joined_zeros(const std::string& name, const Place& place);
  // Declares a matrix that all ranks of the group hold alike.
  ParameterId common_matrix(const std::string& name, const Shape& shape);
  // Declares this rank's rows of a [V,C] matrix.
  ParameterId vocabulary_matrix(const std::string& name, bool trained);

  // Declares the adapters that the configuration asks for among the weights of a Linear, in their
  // order. Adapters of one layer should be declared one after another, so that they share a bucket.
  // divides_out: as in Adapters.
  void adapt(Linear& linear, const std::vector<AdaptedWeight>& weights, bool divides_out);

  // Returns this rank's columns of the packed matrix of queries, keys and values (GPT-2).
  std::vector<IndexRange> packed_columns() const;
  // Return this rank's rows of the separate matrices of queries, and of keys and values.
  IndexRange query_rows() const { return rows_of(share_.heads); }
  IndexRange key_rows() const { return rows_of(share_.kv_heads); }
  // Returns whether this rank is the one that saves its key-value heads.
  bool keeps_keys() const { return share_.rank % share_.kv_copies == 0; }

 private:
  IndexRange rows_of(IndexRange heads) const {
    return {heads.first * config_.head_dim, heads.count * config_.head_dim};
  }
  Place common(const Shape& shape) const;
  ParameterId add(Parameter parameter);
  ParameterId add_a(const std::string& name, const Place& weight, const Linear& linear,
                    bool divides_out, bool joined);
  ParameterId add_b(const std::string& name, const Place& weight, const Linear& linear,
                    bool divides_out);

  const ModelConfig& config_;
  TensorShare share_;
  ParameterStore& store_;
};

// Builds the parts of one model family. The calls must come in model order, because they declare
// parameters.
class FamilyBuilder {
 public:
  virtual ~FamilyBuilder() = default;
  virtual std::string token_name() const = 0;
  // Declares the learned positions; returns kNoParameter if the family has none.
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
