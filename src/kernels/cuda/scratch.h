// Scratch memory of kernels: one area per stream, which any kernel on that stream may overwrite, so
// that it holds a value only within one entry of the table. An area that has become too small stays
// allocated, because work in flight or a captured graph may still use it; areas grow at least
// twofold, so all of them together take at most twice the largest. Growing allocates device memory,
// which is not permitted during a capture: run a step before it is captured. Any thread.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

namespace trireme::cuda {

// Returns at least `bytes` bytes of device memory, aligned to 256 bytes. Throws ResourceError if
// there is no memory left.
void* scratch(cudaStream_t stream, std::int64_t bytes);

// Returns scratch for `count` elements of type T.
template <class T>
T* scratch_of(cudaStream_t stream, std::int64_t count) {
  return static_cast<T*>(scratch(stream, count * static_cast<std::int64_t>(sizeof(T))));
}

}  // namespace trireme::cuda
