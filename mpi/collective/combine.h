// Implements the arithmetic of reductions, element by element. Pure functions, for any thread.
#pragma once

#include "mpi/communicator.h"

namespace trireme {

// Sets into = into op other, for f32, f64, i32 and i64 (widen bf16 to f32 first). `other` holds
// into.count elements of the same type. Integers wrap around. If either operand is a NaN, the
// result is a NaN, for max and min too.
void combine(const View& into, const void* other, ReduceOp op);

// Convert n elements: to[i] = float(from[i]), and back with rounding to nearest even.
void widen(const bf16* from, float* to, std::int64_t n);
void narrow(const float* from, bf16* to, std::int64_t n);

}  // namespace trireme
