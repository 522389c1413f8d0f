// Norm: LayerNorm, or RMSNorm where there is no bias, at the head of a residual branch.
#pragma once

#include "src/nn/layer.h"
#include "src/nn/linear.h"

namespace trireme {

struct Norm {
  ParameterId weight = kNoParameter;
  ParameterId bias = kNoParameter;  // kNoParameter: RMSNorm
  float epsilon = 1e-5F;

  // What backward needs.
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

  // Adds stream.delta into stream.x (in delta's storage, leaving delta empty) and normalizes it.
  Result forward(Residual& stream, Run& run) const;
  // What Kept::push pushed.
  Kept pop(Saved& saved) const;
  // Makes y of forward again, the same bits.
  Tensor again(const Kept& kept, Run& run) const;
  // norm'(dy) + dresidual, T [B,T,C]; dresidual may be empty. May take the place of dy or of
  // dresidual, where reuse allows.
  Tensor backward(const Tensor& dy, const Tensor& dresidual, const Kept& kept, Run& run) const;

 private:
  TensorGroup::Exchange start_sums(Run& run) const;
  NormForward arguments(const ConstView& x, const View& y, const Run& run) const;
  NormBackward arguments(const Tensor& dy, const Tensor& dresidual, const Kept& kept,
                         const Run& run) const;
};

}  // namespace trireme
