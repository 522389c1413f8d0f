// Model: a transformer, or a slice of one: a list of layers, with an embedding before the first and
// a head behind the last. Holds ids of parameters and sizes; the values, gradients and activations
// live in the store, the sink and the pool of the Run. Construct it before
// ParameterStore::allocate(): the constructor declares the parameters, in model order. Many
// micro-batches may be in flight; calls are not for several threads at once.
//
// A micro-batch passes through slices like this; d are gradients, [B,T,C] like the stream:
//
// (or, where tensor-parallel ranks share out the rows, [1, B T / ranks, C])
//
//   ids -> [first slice] -- stream --> [slice] -- stream --> [last slice] <- targets
//            |     <---------- d ---------  <--------- d ---------  |
//            +---- d of the embedding, if it is tied to the head ---> add_tied_gradient
#pragma once

#include "src/nn/key_value_cache.h"
#include "src/nn/model_parts.h"

namespace trireme {

class Model {
 public:
  // config: complete and valid. ConfigError if its heads can't be shared as the slice asks.
  Model(const ModelConfig& config, const ModelSlice& slice, ParameterStore& store);
  Model(const ModelConfig& config, ParameterStore& store)
      : Model(config, ModelSlice::whole(config), store) {}

  const ModelConfig& config() const { return config_; }
  const ModelSlice& slice() const { return slice_; }
  // The first parameter of each part, rising: where shards of parameters had better begin.
  std::vector<ParameterId> parameter_borders() const;

  // input: T [B,T,C], the stream from the slice before; empty at the first. Returns the stream for
  // the slice behind; the last one keeps it for backward and returns nothing. The micro-batch's
  // data stays alive until its backward is done. ConfigError if time is longer than the context.
  Tensor forward(const MicroBatch& micro_batch, Tensor input, Saved& saved, Run& run) const;
  // d: the gradient of the stream that forward returned; empty at the last slice, whose gradients
  // are those of gradient_scale x loss (1 / tokens of the global batch) and which writes the loss
  // to run.loss. Overwrites every gradient of the slice. Returns the gradient for the slice before;
  // at the first slice, if its embedding is tied, that for add_tied_gradient; else nothing.
  Tensor backward(const MicroBatch& micro_batch, Tensor d, float gradient_scale, Saved& saved,
                  Run& run) const;
  // Whether embedding and head are one matrix on two slices, of which this is one.
  bool is_tied_first() const { return parts_.embedding_is_copy; }
  bool is_tied_last() const { return parts_.tied_gradient.has_value(); }
  // Of either: the matrix.
  ParameterId tied_matrix() const;
  // Of the last slice, after its backward: completes the gradient of the output matrix.
  void add_tied_gradient(const MicroBatch& micro_batch, const Tensor& d, Run& run) const;

  // Keeps nothing for backward. The last slice writes the loss to run.loss and returns nothing, the
  // others return the stream.
  Tensor evaluate(const MicroBatch& micro_batch, Tensor input, Run& run) const;

  // For a whole model: forward and backward, or forward alone. Returns the sum of the token losses,
  // for which it waits.
  double forward_backward(const MicroBatch& micro_batch, float gradient_scale, Run& run) const;
  double evaluate(const MicroBatch& micro_batch, Run& run) const;
  // For a whole model: appends ids, i32 [T] in the host's memory, to the sequence in the cache and
  // returns the logits of the token that follows them: f32 [V]. Throws ConfigError if the cache has
  // no room for T more, and DataError for ids outside the vocabulary.
  Tensor decode(const ConstView& ids, KeyValueCache& cache, Run& run) const;

 private:
  Tensor head_backward(const MicroBatch& micro_batch, float gradient_scale, Saved& saved,
                       Run& run) const;
  Residual stream_of(const MicroBatch& micro_batch, Tensor input, Saved& saved, Run& run) const;
  void check_context(const MicroBatch& micro_batch) const;

  ModelConfig config_;
  ModelSlice slice_;
  ModelParts parts_;
};

}  // namespace trireme
