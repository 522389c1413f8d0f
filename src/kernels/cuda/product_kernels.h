// Kernels that surround a matrix product: what the library's epilogues do where it lacks them, and
// operands for checking an algorithm.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include "src/device/stream.h"
#include "src/kernels/kernel_arguments.h"

namespace trireme::cuda {

// Enqueues c[i, j] += bias[j]; c: f32, bf16 or f16 [rows, columns];
// bias: of the same type, or any of 2 bytes if c is f32.
void add_bias(cudaStream_t stream, const View& c, const ConstView& bias, std::int64_t rows,
              std::int64_t columns);

// Ones stand where the index along the sum, k, is at least `first`, and zeros elsewhere. The matrix
// is stored [k, other], or [other, k] if k_is_inner. Gaps between rows are filled as if the rows
// were longer, so that a product that reads them has wrong sums.
struct OnesFrom {
  std::int64_t row = 0;  // elements from one row to the next
  std::int64_t k = 0;    // terms of a sum; in a batch, each matrix begins anew
  bool k_is_inner = false;
  std::int64_t first = 0;
};
// Enqueues the filling of x: f32, bf16 or f16, or u8 with numbers of the format.
void fill_ones_from(cudaStream_t stream, const View& x, Fp8Format format, const OnesFrom& ones);

// Enqueues c[i] = parts[0][i] + parts[1][i] + ..., in this order, added to the old c[i] if
// `accumulate`; c: f32, parts: f32 [count, c.count].
void add_parts(Stream& stream, const View& c, const float* parts, int count, bool accumulate);

// Enqueues x = value; x: f32, bf16 or f16.
void fill_with(cudaStream_t stream, const View& x, float value);

}  // namespace trireme::cuda
