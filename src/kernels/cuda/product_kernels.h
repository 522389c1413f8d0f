// Kernels that surround a matrix product: what the library's epilogues do where it lacks them, and
// operands for checking an algorithm.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include "src/device/device.h"

namespace trireme::cuda {

// Enqueues c[i, j] += bias[j]; c: f32 or bf16 [rows, columns], bias: f32 or bf16.
void add_bias(cudaStream_t stream, const View& c, const ConstView& bias, std::int64_t rows,
              std::int64_t columns);

// Enqueues x = 1 where the index along the sum, k, is at least `first`, and 0 elsewhere. x: f32 or
// bf16, stored [k, other], or [other, k] if k_is_inner.
void fill_ones_from(cudaStream_t stream, const View& x, std::int64_t k, std::int64_t other,
                    bool k_is_inner, std::int64_t first);

// Enqueues x = value; x: f32 or bf16.
void fill_with(cudaStream_t stream, const View& x, float value);

}  // namespace trireme::cuda
