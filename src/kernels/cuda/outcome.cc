#include "src/kernels/cuda/outcome.h"

#include "src/device/cuda/cuda_check.h"

namespace trireme::cuda {

void require(cudaError_t outcome, const char* what) {
  if (outcome != cudaSuccess) {
    throw_failure(outcome, what);
  }
}

}  // namespace trireme::cuda
