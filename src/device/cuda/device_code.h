// Says for which devices this program holds code. No header of fmt may be included here: nvcc
// compiles the source.
#pragma once

#include <vector>

#include <cuda_runtime.h>

namespace trireme::cuda {

// Looks for code for the calling thread's device. Returns cudaErrorNoKernelImageForDevice or
// cudaErrorInvalidDeviceFunction if there is none.
cudaError_t find_code();
// Returns the compute capabilities that the kernels were compiled for: 90 for 9.0.
std::vector<int> code_capabilities();

}  // namespace trireme::cuda
