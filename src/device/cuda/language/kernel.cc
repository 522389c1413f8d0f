#include "src/device/cuda/language/kernel.h"

#include <vector>

namespace trireme::cuda {
namespace {

// Kernels are added while the program's static objects are made, in any order.
std::vector<const void*>& known_kernels() {
  static std::vector<const void*> known;
  return known;
}

}  // namespace

void know_kernel(const void* function) { known_kernels().push_back(function); }

// Asking for its attributes loads a kernel.
cudaError_t load_kernels() {
  for (const void* const function : known_kernels()) {
    cudaFuncAttributes attributes{};
    const cudaError_t error = cudaFuncGetAttributes(&attributes, function);
    if (error != cudaSuccess) {
      return error;
    }
  }
  return cudaSuccess;
}

}  // namespace trireme::cuda
