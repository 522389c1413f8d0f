// The two interfaces that a model is composed of. A Layer maps the residual stream to the residual
// stream; a Branch is what a residual layer adds to it (attention, MLP). Both hold ids of
// parameters and sizes, never state: any number of micro-batches can be in flight. Backward is
// explicit: it pops from Saved what forward pushed, leaves the gradients of its parameters in
// run.gradients and says so once for each, when final.
//
// In a tensor-parallel group the stream is the same on all ranks, and a branch computes on its part
// of heads or channels: what it returns is a summand, of which the layer makes the sum.
#pragma once

#include "src/nn/run.h"
#include "src/nn/saved.h"
#include "src/nn/shared_rows.h"

namespace trireme {

// The residual stream, [B,T,C]: its value is x + delta. The sum is left to the norm that reads it
// next, which stores it on the way. delta may be empty.
struct Residual {
  Tensor x;
  Tensor delta;
};

class Layer {
 public:
  virtual ~Layer() = default;
  virtual Residual forward(Residual stream, Saved& saved, Run& run) const = 0;
  // d [B,T,C]: the gradient of the stream behind the layer; it is used up. Returns the one before.
  virtual Tensor backward(Tensor d, Saved& saved, Run& run) const = 0;
};

// dx [B,T,C]; in a group a summand, of which the sum has been started.
struct BranchGradient {
  Tensor dx;
  TensorGroup::Exchange sum = 0;
};

class Branch {
 public:
  virtual ~Branch() = default;
  // x [B,T,C] -> [B,T,C], from the run's shared pool
  virtual Tensor forward(const Tensor& x, Saved& saved, Run& run) const = 0;
  // dy [B,T,C] and the x of forward, which may be used up.
  virtual BranchGradient backward(const Tensor& dy, const GatheredRows& x, Saved& saved,
                                  Run& run) const = 0;
};

}  // namespace trireme
