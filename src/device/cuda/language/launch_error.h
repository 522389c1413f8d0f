// The error of a launch, behind a function: no header that nvcc compiles may include fmt, as
// src/base/error.h does.
#pragma once

#include <cuda_runtime.h>

namespace trireme::cuda {

// Throws DeviceError.
[[noreturn]] void throw_launch_error(cudaError_t error);

}  // namespace trireme::cuda
