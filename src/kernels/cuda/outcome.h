// Turns the outcome of a call of the CUDA runtime into an error. Without fmt, for sources that nvcc
// compiles.
#pragma once

#include <cuda_runtime.h>

namespace trireme::cuda {

// Throws unless the call succeeded: DeviceError with the name of the error, the device and advice,
// or ResourceError if the device has no memory left. what: what could not be done, as in "cannot
// ...", or "... failed".
void require(cudaError_t outcome, const char* what);

}  // namespace trireme::cuda
