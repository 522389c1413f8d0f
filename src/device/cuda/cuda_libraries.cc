#include "src/device/cuda/cuda_libraries.h"

#include <cuda_flavour.h>
#include <fmt/format.h>

namespace trireme::cuda {

std::string library_trouble() {
  if (const std::string why = flavour_cublaslt_error(); !why.empty()) {
    return fmt::format(
        "cuBLASLt, which computes matrix products, cannot be loaded ({}): install cuBLAS of the "
        "CUDA that this program was built with ({}) on this node, or name its folder in "
        "LD_LIBRARY_PATH",
        why, back_end_text());
  }
  return "";
}

}  // namespace trireme::cuda
