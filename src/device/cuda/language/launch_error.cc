#include "src/device/cuda/language/launch_error.h"

#include <fmt/format.h>

#include "src/base/error.h"

namespace trireme::cuda {

void throw_launch_error(cudaError_t error) {
  const std::string text = fmt::format("cannot start a kernel on the GPU: {} ({})",
                                       cudaGetErrorString(error), cudaGetErrorName(error));
  if (error == cudaErrorMemoryAllocation) {  // for its local memory or its code
    throw ResourceError("out of memory: " + text);
  }
  throw DeviceError(text);
}

}  // namespace trireme::cuda
