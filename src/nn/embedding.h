// Embedding looks up the rows of the token matrix and adds, for GPT-2, those of the learned
// positions. Its result starts the residual stream. It holds parameter ids and sizes, and has no
// state.
#pragma once

#include "src/nn/layer.h"
#include "src/nn/linear.h"

namespace trireme {

struct Embedding {
  ParameterId token = kNoParameter;     // [V,C]; in a group, the rows of `vocabulary`
  ParameterId position = kNoParameter;  // [context,C]; kNoParameter if they are not learned
  IndexRange vocabulary;                // ids whose rows this rank holds
  std::int64_t channels = 0;
  float dropout = 0;
  float scale = 1;  // of the sum of both rows

  // Returns the stream [B,T,C], in the shares of sequence parallelism if that is on. Positions
  // start at the length of run.cache if there is one.
  Residual forward(const MicroBatch& micro_batch, Run& run) const;
  // Returns whether no gradient of this part is needed.
  bool is_frozen(const Run& run) const {
    return run.parameters[token].frozen &&
           (position == kNoParameter || run.parameters[position].frozen);
  }
  // Replaces d, the gradient of the stream [B,T,C] or this rank's rows of it, by the gradient
  // before dropout and scale. backward_positions and backward_tokens take its result.
  void backward_sum(const Tensor& d, Run& run) const;
  // Computes the gradient of `position` from d, if the model has learned positions.
  void backward_positions(const MicroBatch& micro_batch, const GatheredRows& d, Run& run) const;
  // Adds the embedded tokens' part, from d, to the gradient of `token`. With `first`, that gradient
  // is zeroed before.
  void backward_tokens(const MicroBatch& micro_batch, const GatheredRows& d, bool first,
                       Run& run) const;
};

}  // namespace trireme
