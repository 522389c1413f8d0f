// Adds up the rows of a matrix, for gradients of biases and of the norms' weights.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

namespace trireme::cuda {

// Enqueues first[j] = sum over r of x[r, j] for j < split, and second[j - split] = the same for the
// other columns. All f32; x: [rows, columns]. Each column is added in an order that depends on
// `rows` alone.
void sum_of_rows(cudaStream_t stream, const float* x, std::int64_t rows, std::int64_t columns,
                 float* first, std::int64_t split, float* second);

}  // namespace trireme::cuda
