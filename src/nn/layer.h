// Declares the two interfaces of which a model is composed. A Layer maps the residual stream to the
// residual stream; a Branch computes what a residual layer adds to it (attention, MLP). Both hold
// ids of parameters and sizes, and have no state, so that any number of micro-batches can be in
// flight. Backward is explicit: it pops from Saved what forward pushed, writes the gradients of its
// parameters to run.gradients, and announces each of them once, when it is final.
//
// In a tensor-parallel group, the stream is the same on all ranks (or shared out by rows), and a
// branch computes with its part of the heads or channels. Its result is a summand; the layer sums
// them.
#pragma once

#include "src/nn/run.h"
#include "src/nn/saved.h"
#include "src/nn/shared_rows.h"

namespace trireme {

// Residual is the residual stream [B,T,C]; its value is x + delta. The addition is left to the norm
// that reads the stream next, which stores the sum on the way. delta may be empty.
struct Residual {
  Tensor x;
  Tensor delta;
};

class Layer {
 public:
  virtual ~Layer() = default;
  virtual Residual forward(Residual stream, Saved& saved, Run& run) const = 0;
  // d [B,T,C]: the gradient of the stream after the layer, which may be overwritten. Returns the
  // gradient of the stream before the layer.
  virtual Tensor backward(Tensor d, Saved& saved, Run& run) const = 0;
};

// BranchGradient holds dx [B,T,C]. In a group, dx is this rank's summand, and `sum` is the
// operation that sums it.
struct BranchGradient {
  Tensor dx;
  TensorGroup::Exchange sum = 0;
};

class Branch {
 public:
  virtual ~Branch() = default;
  // x [B,T,C] -> [B,T,C], allocated from run.shared_pool()
  virtual Tensor forward(const Tensor& x, Saved& saved, Run& run) const = 0;
  // dy [B,T,C]; x is that of forward and may be overwritten.
  virtual BranchGradient backward(const Tensor& dy, const GatheredRows& x, Saved& saved,
                                  Run& run) const = 0;
};

}  // namespace trireme
