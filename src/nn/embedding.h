// Embedding: token rows plus, for GPT-2, learned position rows; the start of the residual stream.
#pragma once

#include "src/nn/layer.h"
#include "src/nn/linear.h"

namespace trireme {

struct Embedding {
  ParameterId token = kNoParameter;     // [V,C], or of a group's vocabulary this rank's rows
  ParameterId position = kNoParameter;  // [context,C]; kNoParameter: rotary positions
  IndexRange vocabulary;                // ids whose rows lie here
  std::int64_t channels = 0;
  float dropout = 0;

  // Positions start at the length of run.cache, if there is one.
  Residual forward(const MicroBatch& micro_batch, Run& run) const;
  // d: of the stream, and in its place of what was embedded.
  void backward_dropout(const Tensor& d, Run& run) const;
  // The gradient of `position`, of that d.
  void backward_positions(const MicroBatch& micro_batch, const GatheredRows& d, Run& run) const;
  // Adds the tokens' part, of that d, to the gradient of `token`, or, with `first`, makes it alone.
  void backward_tokens(const MicroBatch& micro_batch, const GatheredRows& d, bool first,
                       Run& run) const;
};

}  // namespace trireme
