// The language of kernels, for the simulated device: what CUDA has no words for, and launches. See
// src/device/cuda/language/cuda_language.h, which has the same names for nvcc.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "src/device/cuda/language/kernel.h"
#include "src/device/cuda/language/launch_error.h"
#include "src/device/sim/matrix_words.h"

namespace trireme::cuda {

template <class T>
T* dynamic_shared() {
  return static_cast<T*>(sim::dynamic_shared_memory());
}

template <class T>
void mma(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  sim::multiply_fragments<T>(d, a, b);
}

inline void ldmatrix(std::uint32_t (&r)[4], const void* row) { sim::load_tiles(r, row, false); }
inline void ldmatrix_transposed(std::uint32_t (&r)[4], const void* row) {
  sim::load_tiles(r, row, true);
}

inline float power_of_two(float x) {
  const float result = std::exp2(x);
  return result < std::numeric_limits<float>::min() ? 0.0F : result;
}

inline void copy_async_16(void* shared, const void* global) {
  sim::check_aligned(static_cast<const uint4*>(shared));
  sim::check_aligned(static_cast<const uint4*>(global));
  sim::issue_copy(shared, global, 16);
}
inline void copy_async_16_or_zero(void* shared, const void* global, bool there) {
  static constexpr uint4 kZeros{};
  copy_async_16(shared, there ? global : &kZeros);
}
inline void commit_copies() { sim::commit_copies(); }
template <int kPending>
void wait_copies() {
  sim::wait_copies(kPending);
}

template <class... Parameters>
void allow_shared(const Kernel<Parameters...>& kernel, std::size_t bytes) {
  const cudaError_t error = cudaFuncSetAttribute(
      kernel.function(), cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  if (error != cudaSuccess) {
    throw_launch_error(error);
  }
}

template <class... Parameters, class... Arguments>
void launch(const Kernel<Parameters...>& kernel, dim3 grid, dim3 block, std::size_t shared_bytes,
            cudaStream_t stream, Arguments&&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  const cudaError_t error =
      cudaLaunchKernelEx(&config, kernel.function(), std::forward<Arguments>(arguments)...);
  if (error != cudaSuccess) {
    throw_launch_error(error);
  }
}

}  // namespace trireme::cuda
