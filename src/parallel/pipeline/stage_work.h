// StageWork: what a rank's virtual stages compute; PipelineRunner says when, and moves what goes
// from stage to stage. Implemented over slices of the model by whoever trains. All tensors are of
// one shape, [B,T,C], and one type; a Tensor that is given is the stage's own, to be changed at
// will; one that it returns may be on its way to another rank and is written to no more, by nobody.
// All calls come from the thread that runs the schedule.
#pragma once

#include <cstdint>

#include "src/tensor/tensor.h"

namespace trireme {

class StageWork {
 public:
  virtual ~StageWork() = default;

  // The residual stream before the chunk -> behind it. input: empty for the first virtual stage,
  // which embeds; result: empty for the last, which goes on to the loss.
  virtual Tensor forward(int chunk, std::int64_t micro_batch, Tensor input) = 0;

  // doutput, the gradient of what forward() returned -> the gradient of its input; empty where that
  // is. The micro-batches of a chunk come in rising order.
  virtual Tensor backward(int chunk, std::int64_t micro_batch, Tensor doutput) = 0;
  // The same in two halves: the gradients of the weights are not asked for before the second, which
  // comes in rising order, too, but after the first halves of other micro-batches.
  virtual Tensor backward_input(int chunk, std::int64_t micro_batch, Tensor doutput) = 0;
  virtual void backward_weight(int chunk, std::int64_t micro_batch) = 0;

  // With tied embeddings and more than one stage: the gradient of what the first virtual stage
  // embedded, after its backward (or the first half of it); and, at the last stage, its share of
  // the shared matrix's gradient of that micro-batch, in rising order.
  virtual Tensor embedding_gradient(std::int64_t micro_batch) = 0;
  virtual void tie(std::int64_t micro_batch, Tensor d) = 0;
};

}  // namespace trireme
