#include <cublasLt.h>
#include <fmt/format.h>

#include "src/device/cuda/cuda_check.h"
#include "src/device/cuda_device.h"
#include "src/kernels/cuda/product_plan.h"
#include "src/kernels/cuda_kernels.h"

namespace trireme {

std::string cuda_product_library() {
  const std::size_t version = cublasLtGetVersion();
  return fmt::format("cuBLASLt {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

// The device's name is part of it, because cuBLASLt chooses algorithms by the number of
// multiprocessors as well. All devices of a job are alike, or its ranks would not agree on their
// kernels.
std::string cuda_instructions() {
  if (cuda::back_end() == cuda::BackEnd::simulated) {
    return "simulated device";
  }
  int index = 0;
  cuda::cuda_check(cudaGetDevice(&index), "cudaGetDevice");
  const cuda::DeviceFacts facts = cuda::device_facts(index);
  return fmt::format("sm_{} on {}", facts.compute_capability, facts.name);
}

// CUDA loads the code of kernels when they are first used. kCodeBytes is a guess at its size.
std::int64_t cuda_workspace_bytes(std::int64_t fp8_bytes, std::int64_t attention_bytes) {
  constexpr std::int64_t kCodeBytes = std::int64_t{256} << 20;
  return cuda::scratch_bytes(fp8_bytes, attention_bytes) +
         (cuda::back_end() == cuda::BackEnd::real ? kCodeBytes : 0);
}

std::int64_t cuda_choice_bytes(std::int64_t longest_sum, std::int64_t element_bytes) {
  return cuda::product_choice_bytes(longest_sum, element_bytes);
}

}  // namespace trireme
