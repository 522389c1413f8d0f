// Embedding: token rows plus, for GPT-2, learned position rows; the start of the residual stream.
#pragma once

#include "src/nn/layer.h"
#include "src/nn/linear.h"

namespace trireme {

struct Embedding {
  ParameterId token = kNoParameter;     // [V,C]
  ParameterId position = kNoParameter;  // [context,C]; kNoParameter: rotary positions
  bool tied = false;                    // the head has already left its part in token's gradient
  std::int64_t channels = 0;
  float dropout = 0;

  // Positions start at the length of run.cache, if there is one.
  Residual forward(const MicroBatch& micro_batch, Run& run) const;
  // d [B,T,C] is used up.
  void backward(const MicroBatch& micro_batch, const Tensor& d, Run& run) const;
};

}  // namespace trireme
