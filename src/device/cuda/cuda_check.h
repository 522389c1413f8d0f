// Turns error codes of the CUDA runtime into exceptions.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

namespace trireme::cuda {

// Throws DeviceError that names the call, the error, and the device of the calling thread.
[[noreturn]] void throw_cuda_error(cudaError_t error, const char* call);

// Throws ResourceError that names the device of the calling thread, and how much of its memory is
// free. bytes: what could not be allocated.
[[noreturn]] void throw_out_of_device_memory(std::int64_t bytes);

inline void cuda_check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) {
    throw_cuda_error(error, call);
  }
}

}  // namespace trireme::cuda
