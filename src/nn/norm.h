// Norm: LayerNorm, or RMSNorm where there is no bias, at the head of a residual branch.
#pragma once

#include "src/nn/layer.h"
#include "src/nn/linear.h"

namespace trireme {

struct Norm {
  ParameterId weight = kNoParameter;
  ParameterId bias = kNoParameter;  // kNoParameter: RMSNorm
  float epsilon = 1e-5F;

  // Adds stream.delta into stream.x (in delta's storage, leaving delta empty) and returns the
  // normalized stream, [B,T,C].
  Tensor forward(Residual& stream, Saved& saved, Run& run) const;
  // dx = norm'(dy) + dresidual, all T [B,T,C]; dresidual may be empty; dx may be either.
  void backward(const View& dy, const ConstView& dresidual, const View& dx, Saved& saved,
                Run& run) const;

 private:
  NormForward arguments(const ConstView& x, const View& y, const Run& run) const;
};

}  // namespace trireme
