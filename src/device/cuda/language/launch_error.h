// Throws the error of a kernel's launch. It is a function of its own because no header that nvcc
// compiles may include fmt, as src/base/error.h does.
#pragma once

#include <cuda_runtime.h>

namespace trireme::cuda {

// Throws DeviceError with CUDA's description of the error.
[[noreturn]] void throw_launch_error(cudaError_t error);

}  // namespace trireme::cuda
