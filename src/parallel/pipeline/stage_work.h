// StageWork is what a rank's virtual stages compute. PipelineRunner decides when, and transfers
// tensors between stages. Implemented over slices of the model by the engine. All tensors have one
// shape, [B,T,C], and one type. An argument belongs to the stage, which may overwrite it; a result
// may be on its way to another rank, and must not be written to any more. All calls come from
// the thread that runs the schedule.
#pragma once

#include <cstdint>

#include "src/tensor/tensor.h"

namespace trireme {

class StageWork {
 public:
  virtual ~StageWork() = default;

  // Computes the residual stream after the chunk from that before it. input is empty for the first
  // virtual stage, which embeds; the result is empty for the last, which computes the loss.
  virtual Tensor forward(int chunk, std::int64_t micro_batch, Tensor input) = 0;

  // Computes the gradient of forward()'s input from doutput, the gradient of its result; each is
  // empty if that is. The micro-batches of a chunk come in rising order.
  virtual Tensor backward(int chunk, std::int64_t micro_batch, Tensor doutput) = 0;
  // The same in two halves. The second computes the gradients of the weights; it comes in rising
  // order, too, but possibly after the first halves of other micro-batches.
  virtual Tensor backward_input(int chunk, std::int64_t micro_batch, Tensor doutput) = 0;
  virtual void backward_weight(int chunk, std::int64_t micro_batch) = 0;

  // With tied embeddings and more than one stage: embedding_gradient() returns the gradient of what
  // the first virtual stage embedded, after its backward (or the first half of it). tie() adds that
  // gradient to the last stage's gradient of the shared matrix; micro-batches come in rising order.
  virtual Tensor embedding_gradient(std::int64_t micro_batch) = 0;
  virtual void tie(std::int64_t micro_batch, Tensor d) = 0;
};

}  // namespace trireme
