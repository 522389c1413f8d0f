// Runs a function object for all elements of arrays, F::kCount adjacent ones at a time. The
// function object is trivially copyable and has the member `count`, the number of elements.
#pragma once

#include "src/device/cuda/cuda_queue.h"
#include "src/kernels/cuda/elements.h"

namespace trireme::cuda {

inline constexpr int kEachThreads = 256;

template <class F>
__global__ void __launch_bounds__(kEachThreads) each_kernel(const F f) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kEachThreads + threadIdx.x;
  const std::int64_t i = thread * F::kCount;
  if (f.wide && i + F::kCount <= f.count) {
    f.template run<true>(i);
  } else if (i < f.count) {
    f.template run<false>(i);
  }
}

template <class F>
void each(Stream& stream, const F& f) {
  if (f.count == 0) {
    return;
  }
  launch(kernel_of<each_kernel<F>>,
         dim3(blocks_of(f.count, std::int64_t{kEachThreads} * F::kCount)), dim3(kEachThreads), 0,
         cuda_stream(stream), f);
}

}  // namespace trireme::cuda
