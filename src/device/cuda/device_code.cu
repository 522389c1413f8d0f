#include "src/device/cuda/device_code.h"

namespace trireme::cuda {
namespace {

// Stands for all kernels, which are compiled for the same compute capabilities.
__global__ void __launch_bounds__(1) empty_kernel() {}

}  // namespace

cudaError_t find_code() {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&empty_kernel));
}

std::vector<int> code_capabilities() {
  std::vector<int> capabilities;
  for (const int architecture : {__CUDA_ARCH_LIST__}) {  // 800 for 8.0
    capabilities.push_back(architecture / 10);
  }
  return capabilities;
}

}  // namespace trireme::cuda
