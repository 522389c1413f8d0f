#include "src/device/cuda/language/launch_error.h"

#include <fmt/format.h>

#include "src/base/error.h"

namespace trireme::cuda {

void throw_launch_error(cudaError_t error) {
  throw DeviceError(fmt::format("cannot start a kernel on the GPU: {} ({})",
                                cudaGetErrorString(error), cudaGetErrorName(error)));
}

}  // namespace trireme::cuda
