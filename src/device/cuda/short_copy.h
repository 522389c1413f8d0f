// Copies memory by a kernel. A copy by cudaMemcpyAsync waits for one of the device's copy engines,
// which may be busy with a long copy of another stream; a kernel does not. No header of fmt may be
// included here: nvcc compiles the source.
#pragma once

#include <cstddef>

#include <cuda_runtime.h>

namespace trireme::cuda {

// The device must be able to access both places: its own memory, or pinned memory of the host.
void copy_by_kernel(void* to, const void* from, std::size_t bytes, cudaStream_t stream);

}  // namespace trireme::cuda
