// Model: a transformer as a list of layers between an embedding and a head. Holds ids of parameters
// and sizes; the values, gradients and activations live in the store and the pool of the Run.
// Construct it before ParameterStore::allocate(): the constructor declares the parameters, in model
// order. Many micro-batches may be in flight; calls are not for several threads at once.
#pragma once

#include "src/nn/key_value_cache.h"
#include "src/nn/model_parts.h"

namespace trireme {

class Model {
 public:
  // config: complete and valid.
  Model(const ModelConfig& config, ParameterStore& store);

  const ModelConfig& config() const { return config_; }

  // Returns the sum of the losses of all tokens, in double, added in their order. Overwrites every
  // gradient in the bound buffer with that of gradient_scale x the sum; gradient_scale is 1 /
  // tokens of the global batch. ConfigError if time is longer than the context.
  double forward_backward(const MicroBatch& micro_batch, float gradient_scale, Run& run) const;
  // The same sum, keeping nothing for backward.
  double evaluate(const MicroBatch& micro_batch, Run& run) const;

  // Appends ids, i32 [T], to the sequence in the cache and returns the logits of the token that
  // follows them: f32 [V]. ConfigError if the cache has no room for T more.
  Tensor decode(const ConstView& ids, KeyValueCache& cache, Run& run) const;

 private:
  Residual forward(const MicroBatch& micro_batch, Saved& saved, Run& run) const;
  void check_ids(const ConstView& ids) const;
  void check_context(const MicroBatch& micro_batch) const;

  ModelConfig config_;
  ModelParts parts_;
};

}  // namespace trireme
