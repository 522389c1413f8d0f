// Norm is LayerNorm, or RMSNorm if there is no bias, at the start of a residual branch or of the
// head. Holds parameter ids; has no state.
#pragma once

#include "src/nn/layer.h"
#include "src/nn/linear.h"

namespace trireme {

struct Norm {
  ParameterId weight = kNoParameter;
  ParameterId bias = kNoParameter;  // kNoParameter for RMSNorm
  float epsilon = 1e-5F;

  // Kept holds what backward needs from forward.
  struct Kept {
    Tensor x;     // [B,T,C], the stream
    Tensor mean;  // f32 [B*T]; empty for RMSNorm
    Tensor rstd;  // f32 [B*T]
    void push(Saved& saved) const;
  };
  struct Result {
    Tensor y;  // [B,T,C]
    Kept kept;
  };

  // Adds stream.delta to stream.x (in delta's storage, leaving delta empty) and normalizes the sum.
  Result forward(Residual& stream, Run& run) const;
  // Pops what Kept::push pushed.
  Kept pop(Saved& saved) const;
  // Computes the y of forward again, with the same bits.
  Tensor again(const Kept& kept, Run& run) const;
  // Returns norm'(dy) + dresidual, T [B,T,C]; dresidual may be empty. Unless weight gradients are
  // put off to run.later, the result overwrites dresidual or, without it, dy.
  Tensor backward(const Tensor& dy, const Tensor& dresidual, const Kept& kept, Run& run) const;

 private:
  TensorGroup::Exchange start_sums(Run& run) const;
  NormForward arguments(const ConstView& x, const View& y, const Run& run) const;
  NormBackward arguments(const Tensor& dy, const Tensor& dresidual, const Kept& kept,
                         const Run& run) const;
};

}  // namespace trireme
