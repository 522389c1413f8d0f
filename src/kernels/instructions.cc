#include "src/kernels/instructions.h"

#include <fmt/core.h>

#include "src/kernels/product_library.h"

namespace trireme {
std::string instructions_of(std::string_view kernels) {
  if (kernels == "reference") {
    return "none";
  }
  // As attention_bf16.cc chooses.
  const bool pairs = kernels == "avx512" && __builtin_cpu_supports("avx512bf16") != 0;
  return product_instructions() + (pairs ? ", bf16_dot" : "");
}

std::string kernels_text(std::string_view kernels) {
  return kernels == "reference" ? std::string(kernels)
                                : fmt::format("{} ({})", kernels, instructions_of(kernels));
}

}  // namespace trireme
