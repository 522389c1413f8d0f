#include "src/kernels/instructions.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <fmt/core.h>

#include "src/kernels/cuda_kernels.h"
#include "src/kernels/product_library.h"

namespace trireme {
namespace {

constexpr std::string_view kCuda = "cuda";  // the table's name

}  // namespace

std::string instructions_of(std::string_view kernels) {
  if (kernels == "reference") {
    return "none";
  }
  if (kernels == kCuda) {
    return cuda_instructions();
  }
  // This must agree with the choice in attention_bf16.cc.
  const bool pairs = kernels == "avx512" && __builtin_cpu_supports("avx512bf16") != 0;
  return product_instructions() + (pairs ? ", bf16_dot" : "");
}

namespace {

// The names that product_instructions() returns, from the least to the richest set.
constexpr std::array<std::string_view, 8> kInstructions = {"sse41",
                                                           "avx",
                                                           "avx2",
                                                           "avx2_vnni",
                                                           "avx512_core",
                                                           "avx512_core_vnni",
                                                           "avx512_core_bf16",
                                                           "avx512_core_amx"};

// Returns the richest of kInstructions that oneDNN could use on this processor.
std::string_view instructions_of_processor() {
  const bool avx512 =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  const bool vnni = avx512 && __builtin_cpu_supports("avx512vnni") != 0;
  const bool bf16 = vnni && __builtin_cpu_supports("avx512bf16") != 0;
  const bool amx = bf16 && __builtin_cpu_supports("amx-tile") != 0 &&
                   __builtin_cpu_supports("amx-int8") != 0 &&
                   __builtin_cpu_supports("amx-bf16") != 0;
  const bool avx2 = __builtin_cpu_supports("avx2") != 0;
  return amx      ? "avx512_core_amx"
         : bf16   ? "avx512_core_bf16"
         : vnni   ? "avx512_core_vnni"
         : avx512 ? "avx512_core"
         : avx2   ? "avx2"
                  : "sse41";
}

bool is_set(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

}  // namespace

std::string products_of(std::string_view kernels) {
  return kernels == kCuda ? cuda_product_library() : product_library();
}

std::string lesser_instructions(std::string_view kernels) {
  if (kernels == "reference" || kernels == kCuda || is_set("TRIREME_KERNELS")) {
    return "";
  }
  const std::string used = product_instructions();
  const std::string_view best = instructions_of_processor();
  // A set that is missing from the list is newer than all in it.
  const auto best_at = std::find(kInstructions.begin(), kInstructions.end(), best);
  if (std::find(kInstructions.begin(), best_at, used) == best_at) {
    return "";
  }
  std::string text = fmt::format("{} instead of {}", used, best);
  for (const char* const variable : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    if (is_set(variable)) {
      return text + fmt::format(" ({}={})", variable, std::getenv(variable));
    }
  }
  return text;
}

std::string kernels_text(std::string_view kernels) {
  return kernels == "reference" ? std::string(kernels)
                                : fmt::format("{} ({})", kernels, instructions_of(kernels));
}

}  // namespace trireme
