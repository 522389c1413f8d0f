// The two interfaces that a model is composed of. A Layer maps the residual stream to the residual
// stream; a Branch is what a residual layer adds to it (attention, MLP). Both hold ids of
// parameters and sizes, never state: any number of micro-batches can be in flight. Backward is
// explicit: it pops from Saved what forward pushed, overwrites the gradients of its parameters in
// the bound buffer and calls run.gradient_ready once for each, when final.
#pragma once

#include "src/nn/run.h"
#include "src/nn/saved.h"

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
  // d [B,T,C]: the gradient of the stream behind the layer, turned in place into the one before it.
  virtual void backward(const Tensor& d, Saved& saved, Run& run) const = 0;
};

class Branch {
 public:
  virtual ~Branch() = default;
  // x [B,T,C] -> [B,T,C]
  virtual Tensor forward(const Tensor& x, Saved& saved, Run& run) const = 0;
  // dy [B,T,C] -> dx [B,T,C]; dy is left as it was.
  virtual Tensor backward(const Tensor& dy, Saved& saved, Run& run) const = 0;
};

}  // namespace trireme
