// The global gradient norm and the factor that clips it. The sum runs over the parameters in the
// bytewise order of their names, in double, each in fixed blocks (kSumBlock): the same bits however
// the flat buffer is cut into shards or stages.
#pragma once

#include "src/kernels/kernels.h"
#include "src/nn/parameter.h"

namespace trireme {

// sqrt(sum of squares) of gradients, f32 [flat_elements], laid out like the store.
double gradient_norm(const ParameterStore& store, const ConstView& gradients,
                     const Kernels& kernels, Stream& stream);

// What to multiply gradients with so that their norm is at most max_norm: min(1, max / (norm +
// 1e-6)), as PyTorch does. 1 if max_norm is 0: no clipping.
double clip_factor(double norm, double max_norm);

}  // namespace trireme
