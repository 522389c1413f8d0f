// Turns error codes of the CUDA runtime into exceptions.
#pragma once

#include <cuda_runtime.h>

namespace trireme::cuda {

// Throws DeviceError that names the call, the error, and the device of the calling thread.
[[noreturn]] void throw_cuda_error(cudaError_t error, const char* call);

inline void cuda_check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) {
    throw_cuda_error(error, call);
  }
}

}  // namespace trireme::cuda
