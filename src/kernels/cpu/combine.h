// Computes Muon's linear combinations, and keeps weights at zero. This file is compiled once for
// all instruction sets, without fused multiplication and addition, so that every cpu table gives
// the same bits. Callable from any thread.
#pragma once

#include "src/device/stream.h"
#include "src/kernels/kernel_arguments.h"

namespace trireme::cpu {

void combine(Stream& stream, const Combine& p);
// x: f32 [n]; sums: f64.
void normalize(Stream& stream, View x, ConstView sums, float epsilon);
// x, y: f32 [n].
void zero_where_zero(Stream& stream, View x, ConstView y);

}  // namespace trireme::cpu
