// Sums and maxima over the threads of a warp or a block, in an order that depends on the number of
// threads alone. Blocks consist of whole warps.
#pragma once

#include <cuda_language.h>

namespace trireme::cuda {

inline constexpr unsigned kAllLanes = 0xFFFFFFFFU;
inline constexpr int kWarp = 32;
inline constexpr int kMostWarps = 32;

template <class T>
__device__ inline T warp_sum(T x) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    x += __shfl_xor_sync(kAllLanes, x, distance);
  }
  return x;
}

// Returns the sum over all threads of the block to each of them. Contains barriers.
template <class T>
__device__ inline T block_sum(T x) {
  __shared__ T partial[kMostWarps];
  x = warp_sum(x);
  if (threadIdx.x % kWarp == 0) {
    partial[threadIdx.x / kWarp] = x;
  }
  __syncthreads();
  T sum = partial[0];
  for (unsigned warp = 1; warp < blockDim.x / kWarp; ++warp) {
    sum += partial[warp];
  }
  __syncthreads();
  return sum;
}

// Returns the maximum over all threads of the block to each of them; ignores NaN. Contains
// barriers.
__device__ inline float block_max(float x) {
  __shared__ float partial[kMostWarps];
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, distance));
  }
  if (threadIdx.x % kWarp == 0) {
    partial[threadIdx.x / kWarp] = x;
  }
  __syncthreads();
  float most = partial[0];
  for (unsigned warp = 1; warp < blockDim.x / kWarp; ++warp) {
    most = fmaxf(most, partial[warp]);
  }
  __syncthreads();
  return most;
}

}  // namespace trireme::cuda
