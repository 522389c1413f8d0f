#include "src/kernels/instructions.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <cpuid.h>
#include <fmt/core.h>
#include <immintrin.h>

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

// Returns whether the processor has AMX's tiles with int8 and bf16 products, and the operating
// system saves them (Intel's manual, volume 1, section 18.2). Clang 14's __builtin_cpu_supports
// does not know AMX.
__attribute__((target("xsave"))) bool has_amx() {
  constexpr unsigned kOsSavesState = 1U << 27;                              // leaf 1, ecx
  constexpr unsigned kBf16TileInt8 = (1U << 22) | (1U << 24) | (1U << 25);  // leaf 7, edx
  constexpr unsigned long long kTileState = 3ULL << 17;                     // XCR0
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kOsSavesState) == 0 ||
      __get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) {
    return false;
  }
  return (d & kBf16TileInt8) == kBf16TileInt8 && (_xgetbv(0) & kTileState) == kTileState;
}

// Returns the richest of kInstructions that oneDNN could use on this processor.
std::string_view instructions_of_processor() {
  const bool avx512 =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  const bool vnni = avx512 && __builtin_cpu_supports("avx512vnni") != 0;
  const bool bf16 = vnni && __builtin_cpu_supports("avx512bf16") != 0;
  const bool amx = bf16 && has_amx();
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
