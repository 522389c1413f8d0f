#include "src/kernels/cuda/outcome.h"

#include "src/base/error.h"

namespace trireme::cuda {

void require(cudaError_t outcome, const char* what) {
  if (outcome != cudaSuccess) {
    throw DeviceError(fmt::format("{}: {}", what, cudaGetErrorString(outcome)));
  }
}

}  // namespace trireme::cuda
