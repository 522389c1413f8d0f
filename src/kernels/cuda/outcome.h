// Turns the outcome of a call of the CUDA runtime into an error. Without fmt, for sources that nvcc
// compiles.
#pragma once

#include <cuda_runtime.h>

namespace trireme::cuda {

// Throws DeviceError unless the call succeeded. what: what could not be done, as in "cannot ...".
void require(cudaError_t outcome, const char* what);

}  // namespace trireme::cuda
