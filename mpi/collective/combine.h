// The arithmetic of reductions, element by element. Pure functions, any thread.
#pragma once

#include "mpi/communicator.h"

namespace trireme {

// into = into op other, for f32, f64, i32, i64 (bf16 is widened to f32 first); other holds
// into.count elements of the same type. Integers wrap around. A NaN on either side gives a NaN, for
// max and min too.
void combine(const View& into, const void* other, ReduceOp op);

// to[i] = float(from[i]), and back with rounding to nearest even; n elements.
void widen(const bf16* from, float* to, std::int64_t n);
void narrow(const float* from, bf16* to, std::int64_t n);

}  // namespace trireme
