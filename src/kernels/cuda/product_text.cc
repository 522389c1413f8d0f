#include "src/kernels/cuda/product_text.h"

#include <array>

#include <fmt/ranges.h>

#include "src/base/error.h"

namespace trireme::cuda {
namespace {

template <class T>
std::string setting(const cublasLtMatmulAlgo_t& algorithm, const char* name,
                    cublasLtMatmulAlgoConfigAttributes_t attribute) {
  T value{};
  const cublasStatus_t status =
      cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof value, nullptr);
  return status == CUBLAS_STATUS_SUCCESS ? fmt::format("{} {}", name, value)
                                         : fmt::format("{} unknown", name);
}

}  // namespace

std::string describe(const ProductKind& kind) {
  std::string text = fmt::format("{}x{}x{} {}", kind.m, kind.n, kind.k, dtype_name(kind.type));
  const auto add = [&](bool applies, std::string_view what) {
    text += applies ? fmt::format(", {}", what) : "";
  };
  if (kind.c_type != kind.type) {
    text += fmt::format(" to {}", dtype_name(kind.c_type));
  }
  add(kind.a_format == Fp8Format::e4m3, "A in e4m3");
  add(kind.a_format == Fp8Format::e5m2, "A in e5m2");
  add(kind.b_format == Fp8Format::e4m3, "B in e4m3");
  add(kind.b_format == Fp8Format::e5m2, "B in e5m2");
  add(kind.transpose_a, "A transposed");
  add(kind.transpose_b, "B transposed");
  add(kind.accumulate, "added to C");
  add(kind.bias, "bias");
  add(kind.epilogue == Epilogue::gelu, "GELU");
  add(kind.epilogue == Epilogue::gelu_backward, "GELU's gradient");
  add(kind.parts > 1, fmt::format("{} at a time", kind.parts));
  add(kind.pitch_a > 0, fmt::format("A's rows at {}", kind.pitch_a));
  add(kind.pitch_b > 0, fmt::format("B's rows at {}", kind.pitch_b));
  add(kind.pitch_c > 0, fmt::format("C's rows at {}", kind.pitch_c));
  struct Operand {
    const char* name;
    int alignment;  // 0: absent
  };
  for (const Operand& each : {Operand{"A", kind.alignment_a}, Operand{"B", kind.alignment_b},
                              Operand{"C", kind.alignment_c}, Operand{"bias", kind.alignment_bias},
                              Operand{"GELU's operand", kind.alignment_aux}}) {
    add(each.alignment != 0 && each.alignment < kMostAlignment,
        fmt::format("{} aligned to {}", each.name, each.alignment));
  }
  return text;
}

std::string describe(const cublasLtMatmulAlgo_t& algorithm) {
  using Wide = std::uint32_t;
  using Narrow = std::uint16_t;
  const std::array<std::string, 9> settings = {
      setting<Wide>(algorithm, "algorithm", CUBLASLT_ALGO_CONFIG_ID),
      setting<Wide>(algorithm, "tile", CUBLASLT_ALGO_CONFIG_TILE_ID),
      setting<Wide>(algorithm, "stages", CUBLASLT_ALGO_CONFIG_STAGES_ID),
      setting<Wide>(algorithm, "split-K", CUBLASLT_ALGO_CONFIG_SPLITK_NUM),
      setting<Wide>(algorithm, "reduction", CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME),
      setting<Wide>(algorithm, "swizzle", CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING),
      setting<Wide>(algorithm, "custom", CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION),
      setting<Narrow>(algorithm, "inner shape", CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID),
      setting<Narrow>(algorithm, "cluster", CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID)};
  return fmt::format("{}", fmt::join(settings, ", "));
}

}  // namespace trireme::cuda
