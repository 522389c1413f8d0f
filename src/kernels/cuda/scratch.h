// Scratch memory of kernels, which the queue of their stream owns (src/device/cuda/scratch.h).
#pragma once

#include "src/device/cuda/cuda_queue.h"

namespace trireme::cuda {

// Returns scratch for `count` elements of type T.
template <class T>
T* scratch_of(Stream& stream, std::int64_t count) {
  return static_cast<T*>(cuda_scratch(stream).take(count * static_cast<std::int64_t>(sizeof(T))));
}

}  // namespace trireme::cuda
