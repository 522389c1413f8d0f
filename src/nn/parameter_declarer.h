// ParameterDeclarer adds the parameters of a model, or of a slice of one, to a store.
#pragma once

#include <string>
#include <vector>

#include "src/nn/linear.h"
#include "src/nn/model_slice.h"

namespace trireme {

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

}  // namespace trireme
