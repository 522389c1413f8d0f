// Kernel is a kernel as launch() takes it, and kernel_of<f> is the one of the function f. Whatever
// a launch names is known from the program's start, so that all kernels can be loaded at once.
//
// CUDA loads a kernel when it is first launched. It may wait until the device has nothing to do,
// and other threads' calls wait meanwhile. If an operation of NCCL waits for a missing rank, the
// device never gets there, and nobody is left who could find that the deadline has passed.
#pragma once

#include <cuda_runtime.h>

namespace trireme::cuda {

// Adds a kernel to those that load_kernels() loads.
void know_kernel(const void* function);
// Loads all kernels of this program on the calling thread's device. Returns the first error.
cudaError_t load_kernels();

template <class... Parameters>
class Kernel {
 public:
  using Function = void (*)(Parameters...);
  explicit Kernel(Function named) : function_(named) {
    know_kernel(reinterpret_cast<const void*>(named));
  }
  Function function() const { return function_; }

 private:
  Function function_;
};

template <auto kFunction>
inline const Kernel kernel_of{kFunction};

}  // namespace trireme::cuda
