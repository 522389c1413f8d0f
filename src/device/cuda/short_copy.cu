#include <cuda_language.h>

#include "src/device/cuda/short_copy.h"

namespace trireme::cuda {
namespace {

constexpr int kCopyThreads = 256;

template <class T>
__global__ void __launch_bounds__(kCopyThreads)
    copy_kernel(T* to, const T* from, std::size_t count) {
  const std::size_t i = std::size_t{blockIdx.x} * kCopyThreads + threadIdx.x;
  if (i < count) {
    to[i] = from[i];
  }
}

template <class T>
void enqueue_copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  const std::size_t count = bytes / sizeof(T);
  const auto blocks = static_cast<unsigned>((count + kCopyThreads - 1) / kCopyThreads);
  launch(kernel_of<copy_kernel<T>>, dim3(blocks), dim3(kCopyThreads), 0, stream,
         static_cast<T*>(to), static_cast<const T*>(from), count);
}

}  // namespace

void copy_by_kernel(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  if (bytes == 0) {
    return;
  }
  const std::size_t remainders =
      reinterpret_cast<std::size_t>(to) | reinterpret_cast<std::size_t>(from) | bytes;
  if (remainders % sizeof(uint4) == 0) {
    enqueue_copy<uint4>(to, from, bytes, stream);
  } else if (remainders % sizeof(unsigned) == 0) {
    enqueue_copy<unsigned>(to, from, bytes, stream);
  } else {
    enqueue_copy<unsigned char>(to, from, bytes, stream);
  }
}

}  // namespace trireme::cuda
