#include "src/device/cuda/cuda_check.h"

#include "src/base/error.h"

namespace trireme::cuda {

void throw_cuda_error(cudaError_t error, const char* call) {
  int device = -1;
  (void)cudaGetDevice(&device);
  (void)cudaGetLastError();  // the next check must not see this error again
  throw DeviceError(fmt::format("{} failed on CUDA device {}: {} ({})", call, device,
                                cudaGetErrorString(error), cudaGetErrorName(error)));
}

}  // namespace trireme::cuda
