// Model is a transformer or a slice of one, that is, a list of layers with an embedding before the
// first and a head after the last. It holds parameter ids and sizes; values, gradients and
// activations are in the store, sink and pool of the Run. Construct it before
// ParameterStore::allocate(), because the constructor declares the parameters, in model order.
// Several micro-batches may be in flight, but only one thread may call it at a time.
//
// A micro-batch passes through slices as follows. d are gradients, of the stream's shape: [B,T,C],
// or this rank's rows of it if tensor-parallel ranks share them.
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
  // config: complete and valid. Throws ConfigError if its heads cannot be divided as the slice
  // says.
  Model(const ModelConfig& config, const ModelSlice& slice, ParameterStore& store);
  Model(const ModelConfig& config, ParameterStore& store)
      : Model(config, ModelSlice::whole(config), store) {}

  const ModelConfig& config() const { return config_; }
  const ModelSlice& slice() const { return slice_; }
  // Returns the first parameter of each layer, and of the head, rising: preferred borders of
  // buckets.
  std::vector<ParameterId> parameter_borders() const;

  // input: T [B,T,C], the stream from the slice before; empty for the first slice. Returns the
  // stream for the next slice; the last slice saves it for backward and returns an empty tensor.
  // The micro-batch's data must stay alive until its backward has ended. Throws ConfigError if it
  // has more tokens per sequence than the model's context.
  Tensor forward(const MicroBatch& micro_batch, Tensor input, Saved& saved, Run& run) const;
  // d: the gradient of the stream that forward returned; empty for the last slice, which computes
  // the gradient of gradient_scale x loss (gradient_scale: 1 / tokens of the global batch) and
  // writes the loss to run.loss. Overwrites all gradients of the slice. Returns the gradient for
  // the slice before. The first slice returns an empty tensor, or the argument of add_tied_gradient
  // if is_tied_first().
  Tensor backward(const MicroBatch& micro_batch, Tensor d, float gradient_scale, Saved& saved,
                  Run& run) const;
  // Returns whether embedding and head are one matrix that two slices hold, and this is the first
  // or last of these two.
  bool is_tied_first() const { return parts_.embedding_is_copy; }
  bool is_tied_last() const { return parts_.tied_gradient.has_value(); }
  // Returns the parameter of that matrix in this slice. Requires is_tied_first() or is_tied_last().
  ParameterId tied_matrix() const;
  // Completes the gradient of the output matrix after the last slice's backward. d: as returned by
  // the first slice's backward.
  void add_tied_gradient(const MicroBatch& micro_batch, const Tensor& d, Run& run) const;

  // Runs forward without saving anything for backward. The last slice writes the loss to run.loss
  // and returns an empty tensor; the others return the stream.
  Tensor evaluate(const MicroBatch& micro_batch, Tensor input, Run& run) const;

  // For a whole model: runs forward and backward, or forward alone, waits for the sum of the token
  // losses, and returns it.
  double forward_backward(const MicroBatch& micro_batch, float gradient_scale, Run& run) const;
  double evaluate(const MicroBatch& micro_batch, Run& run) const;
  // For a whole model: appends ids, i32 [T] in the host's memory, to the sequence in the cache and
  // returns the logits of the tokens that follow the last `rows` of them: f32 [rows,V]. Throws
  // ConfigError if the cache has no room for T more, and DataError for ids outside the vocabulary.
  Tensor decode(const ConstView& ids, KeyValueCache& cache, Run& run, std::int64_t rows = 1) const;

 private:
  Tensor rows_of_head(const MicroBatch& micro_batch, Run& run) const;
  Tensor head_backward(const MicroBatch& micro_batch, float gradient_scale, Saved& saved,
                       Run& run) const;
  Residual stream_of(const MicroBatch& micro_batch, Tensor input, Saved& saved, Run& run) const;
  void check_context(const MicroBatch& micro_batch) const;

  ModelConfig config_;
  ModelSlice slice_;
  ModelParts parts_;
};

}  // namespace trireme
