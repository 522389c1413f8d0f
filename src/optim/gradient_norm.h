// The global gradient norm and the factor that clips it. Squares are summed in double over fixed
// blocks (kSumBlock) of each parameter, the blocks exactly (ExactSum): the same bits however the
// parameters are spread over shards, stages and stores.
#pragma once

#include "src/base/exact_sum.h"
#include "src/kernels/kernels.h"
#include "src/nn/parameter.h"

namespace trireme {

// Adds the squares of gradients: f32, the flat elements of the store from `first` on, a multiple of
// kSumBlock. Left out: parameters that are copies, for another rank adds them (trained, primary).
void add_squares(const ParameterStore& store, std::int64_t first, const ConstView& gradients,
                 const Kernels& kernels, Stream& stream, ExactSum& sum);

// sqrt(sum of squares) of gradients, f32 [flat_elements], laid out like the store.
double gradient_norm(const ParameterStore& store, const ConstView& gradients,
                     const Kernels& kernels, Stream& stream);

// What to multiply gradients with so that their norm is at most max_norm: min(1, max / (norm +
// 1e-6)), as PyTorch does. 1 if max_norm is 0: no clipping.
double clip_factor(double norm, double max_norm);

}  // namespace trireme
