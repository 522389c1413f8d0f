#include <cublasLt.h>
#include <fmt/format.h>

#include "src/device/cuda/cuda_check.h"
#include "src/device/cuda_device.h"
#include "src/kernels/cuda_kernels.h"

namespace trireme {

std::string cuda_product_library() {
  const std::size_t version = cublasLtGetVersion();
  return fmt::format("cuBLASLt {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

// All devices of a job execute the same instructions, or its ranks would not agree on their
// kernels.
std::string cuda_instructions() {
  if (cuda::back_end() == cuda::BackEnd::simulated) {
    return "simulated device";
  }
  int index = 0;
  cuda::cuda_check(cudaGetDevice(&index), "cudaGetDevice");
  return fmt::format("sm_{}", cuda::device_facts(index).compute_capability);
}

}  // namespace trireme
