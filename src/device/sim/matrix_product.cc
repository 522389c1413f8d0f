#include "src/device/sim/matrix_product.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>

#include "src/device/sim/kernel_thread.h"
#include "src/device/sim/machine.h"
#include "src/device/sim/product.h"

namespace sim {
namespace {

constexpr std::int64_t kAuxAlignment = 8;  // elements of its leading dimension
constexpr std::uintptr_t kPointerAlignment = 16;

bool is_aligned(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % kPointerAlignment == 0;
}

bool is_known_type(cudaDataType type) {
  return type == CUDA_R_32F || type == CUDA_R_16F || type == CUDA_R_16BF;
}

// Products of fp8, as documented for Hopper: e4m3 with either format, the first operand transposed
// and the second not, all leading dimensions and addresses multiples of 16 bytes, results of bf16
// or fp32, no epilogues but a bias of bf16.
bool are_fp8_operands(const MatrixProduct& p) {
  const auto is_multiple = [](const MatrixLayout& one) {
    return one.leading_dimension * static_cast<std::int64_t>(element_bytes(one.type)) % 16 == 0;
  };
  const bool formats = is_fp8(p.a.type) && is_fp8(p.b.type) &&
                       (p.a.type == CUDA_R_8F_E4M3 || p.b.type == CUDA_R_8F_E4M3);
  const bool results = p.d.type == CUDA_R_16BF || p.d.type == CUDA_R_32F;
  const bool epilogue = p.epilogue == CUBLASLT_EPILOGUE_DEFAULT ||
                        (p.epilogue == CUBLASLT_EPILOGUE_BIAS && p.bias_type == CUDA_R_16BF);
  return formats && results && epilogue && p.transposes_a && !p.transposes_b && is_multiple(p.a) &&
         is_multiple(p.b) && is_multiple(p.d) && p.d.rows % 16 == 0 && p.k() % 16 == 0;
}

bool is_known_epilogue(int epilogue) {
  switch (epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_GELU:
    case CUBLASLT_EPILOGUE_GELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU_AUX:
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
    case CUBLASLT_EPILOGUE_DGELU:
    case CUBLASLT_EPILOGUE_DGELU_BGRAD:
    case CUBLASLT_EPILOGUE_BGRADA:
    case CUBLASLT_EPILOGUE_BGRADB:
      return true;
    default:
      return false;
  }
}

bool uses_bias(const MatrixProduct& product) {
  return product.has(kAddBias) || product.has(kBiasGradient) ||
         product.epilogue == CUBLASLT_EPILOGUE_BGRADA ||
         product.epilogue == CUBLASLT_EPILOGUE_BGRADB;
}

// GELU in its form with tanh (Hendrycks and Gimpel, arXiv:1606.08415), as cuBLASLt has it.
constexpr float kGeluScale = 0.7978845608F;  // sqrt(2 / pi)
constexpr float kGeluCubic = 0.044715F;

float gelu_tanh(float x) { return std::tanh(kGeluScale * (x + kGeluCubic * x * x * x)); }
float gelu(float x) { return 0.5F * x * (1 + gelu_tanh(x)); }
float gelu_derivative(float x) {
  const float t = gelu_tanh(x);
  const float inner = kGeluScale * (1 + 3 * kGeluCubic * x * x);
  return 0.5F * (1 + t) + 0.5F * x * (1 - t * t) * inner;
}

void check_operand(const char* name, const void* data, std::size_t bytes) {
  check_in_allocation((std::string("cublasLtMatmul: ") + name).c_str(), data, bytes);
}

std::size_t bytes_of(std::int64_t rows, std::int64_t columns, std::int64_t leading_dimension,
                     cudaDataType type) {
  return static_cast<std::size_t>((columns - 1) * leading_dimension + rows) * element_bytes(type);
}
std::size_t bytes_of(const MatrixLayout& layout) {
  return bytes_of(layout.rows, layout.columns, layout.leading_dimension, layout.type);
}

float scale_at(const void* scale) {
  return scale == nullptr ? 1.0F : *reinterpret_cast<const float*>(accessible(scale));
}

// Computes a product panel by panel. The buffers are kept for the next product; only the machine's
// worker uses them.
class Computation {
 public:
  void run(const MatrixProduct& product);

 private:
  void multiply(std::int64_t row, std::int64_t column, float* sums) const;
  void finish(std::int64_t row, std::int64_t column, std::int64_t count, float* v);
  void write_bias_gradient();
  void sum_stripes(const std::vector<float>& packed, std::int64_t width);

  const MatrixProduct* product_ = nullptr;
  float factor_ = 1;  // of all sums
  std::vector<float> a_;
  std::vector<float> b_;
  std::vector<float> bias_gradient_;
};

void Computation::run(const MatrixProduct& product) {
  product_ = &product;
  factor_ = product.alpha * scale_at(product.a_scale) * scale_at(product.b_scale);
  pack_stripes<kPanelRows>(accessible(product.a_data), product.a, product.transposes_a, a_);
  // The columns of b are the rows of its transpose.
  pack_stripes<kPanelColumns>(accessible(product.b_data), product.b, !product.transposes_b, b_);
  bias_gradient_.assign(static_cast<std::size_t>(std::max(product.d.rows, product.d.columns)), 0);
  for (std::int64_t column = 0; column < product.d.columns; column += kPanelColumns) {
    const std::int64_t columns = std::min(kPanelColumns, product.d.columns - column);
    for (std::int64_t row = 0; row < product.d.rows; row += kPanelRows) {
      float sums[kPanelColumns * kPanelRows];
      multiply(row, column, sums);
      for (std::int64_t j = 0; j < columns; ++j) {
        finish(row, column + j, std::min(kPanelRows, product.d.rows - row), sums + j * kPanelRows);
      }
    }
  }
  write_bias_gradient();
}

// Computes the sums of one panel.
void Computation::multiply(std::int64_t row, std::int64_t column, float* sums) const {
  const std::int64_t k = product_->k();
  const float* const a = a_.data() + row * k;
  const float* const b = b_.data() + column * k;
  if (!product_->splits_sums && !product_->adds_halves) {
    multiply_panels(a, b, std::max<std::int64_t>(k - product_->lost_terms, 0), sums);
    return;
  }
  const std::size_t parts = product_->splits_sums ? 3 : 2;
  const std::size_t first = product_->splits_sums ? machine().random_below(parts) : 0;
  std::fill(sums, sums + kPanelColumns * kPanelRows, 0.0F);
  for (std::size_t i = 0; i < parts; ++i) {
    const auto part = static_cast<std::int64_t>((first + i) % parts);
    const std::int64_t begin = k * part / static_cast<std::int64_t>(parts);
    const std::int64_t end = k * (part + 1) / static_cast<std::int64_t>(parts);
    float more[kPanelColumns * kPanelRows];
    multiply_panels(a + begin * kPanelRows, b + begin * kPanelColumns, end - begin, more);
    std::transform(sums, sums + kPanelColumns * kPanelRows, more, sums, std::plus());
  }
}

// Applies the epilogue to `count` sums of one column and writes the results.
void Computation::finish(std::int64_t row, std::int64_t column, std::int64_t count, float* v) {
  const MatrixProduct& p = *product_;
  float other[kPanelRows];
  for (std::int64_t i = 0; i < count; ++i) {
    v[i] *= factor_;
  }
  if (p.beta != 0) {
    read_elements(accessible(p.c_data), p.c.type, column * p.c.leading_dimension + row, count,
                  other);
    for (std::int64_t i = 0; i < count; ++i) {
      v[i] += p.beta * other[i];
    }
  }
  if (p.has(kAddBias)) {
    read_elements(accessible(p.bias), p.bias_type, row, count, other);
    for (std::int64_t i = 0; i < count; ++i) {
      v[i] += other[i];
    }
  }
  const std::int64_t aux_at = column * p.aux_leading_dimension + row;
  if (p.has(kApplyGelu)) {
    if (p.has(kUseAux)) {
      write_elements(accessible(p.aux), p.aux_type, aux_at, count, v);
    }
    std::transform(v, v + count, v, gelu);
  }
  if (p.has(kGeluGradient)) {
    read_elements(accessible(p.aux), p.aux_type, aux_at, count, other);
    for (std::int64_t i = 0; i < count; ++i) {
      v[i] *= gelu_derivative(other[i]);
    }
  }
  if (p.has(kBiasGradient)) {
    for (std::int64_t i = 0; i < count; ++i) {
      bias_gradient_[static_cast<std::size_t>(row + i)] += v[i];
    }
  }
  write_elements(accessible(p.d_data), p.d.type, column * p.d.leading_dimension + row, count, v);
}

// Adds the elements of each packed row along k.
void Computation::sum_stripes(const std::vector<float>& packed, std::int64_t width) {
  const std::int64_t k = product_->k();
  for (std::size_t row = 0; row < bias_gradient_.size(); ++row) {
    const auto at = static_cast<std::int64_t>(row);
    const std::int64_t start = at / width * width * k + at % width;
    for (std::int64_t l = 0; l < k && start < static_cast<std::int64_t>(packed.size()); ++l) {
      bias_gradient_[row] += packed[static_cast<std::size_t>(start + l * width)];
    }
  }
}

void Computation::write_bias_gradient() {
  const MatrixProduct& p = *product_;
  std::int64_t count = p.d.rows;
  if (p.epilogue == CUBLASLT_EPILOGUE_BGRADA) {
    sum_stripes(a_, kPanelRows);
  } else if (p.epilogue == CUBLASLT_EPILOGUE_BGRADB) {
    sum_stripes(b_, kPanelColumns);
    count = p.d.columns;
  } else if (!p.has(kBiasGradient)) {
    return;
  }
  write_elements(accessible(p.bias), p.bias_type, 0, count, bias_gradient_.data());
}

}  // namespace

cublasStatus_t check_product(const MatrixProduct& p) {
  const std::int64_t k_of_b = p.transposes_b ? p.b.columns : p.b.rows;
  const std::int64_t rows = p.transposes_a ? p.a.columns : p.a.rows;
  const std::int64_t columns = p.transposes_b ? p.b.rows : p.b.columns;
  for (const MatrixLayout& one : {p.a, p.b, p.c, p.d}) {
    if (one.rows < 1 || one.columns < 1 || one.leading_dimension < one.rows) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (!is_known_type(one.type) && !is_fp8(one.type)) {
      return CUBLAS_STATUS_NOT_SUPPORTED;
    }
  }
  for (const MatrixLayout& one : {p.a, p.b, p.c}) {
    if (one.batch != p.d.batch || one.batch < 1) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
  }
  if (p.d.batch > 1 && p.epilogue != CUBLASLT_EPILOGUE_DEFAULT) {
    return CUBLAS_STATUS_NOT_SUPPORTED;  // as far as this program needs it
  }
  if (k_of_b != p.k() || rows != p.d.rows || columns != p.d.columns || p.c.rows != p.d.rows ||
      p.c.columns != p.d.columns) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const bool has_fp8 = is_fp8(p.a.type) || is_fp8(p.b.type);
  const bool operands = has_fp8 ? are_fp8_operands(p)
                                : p.a.type == p.b.type && !is_fp8(p.d.type) &&
                                      (p.d.type == p.a.type || p.d.type == CUDA_R_32F);
  if (!operands || p.c.type != p.d.type || !is_known_epilogue(p.epilogue)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (!has_fp8 && (p.a_scale != nullptr || p.b_scale != nullptr)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (uses_bias(p) && (p.bias == nullptr || !is_known_type(p.bias_type))) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (p.has(kUseAux)) {
    if (p.aux == nullptr || p.aux_leading_dimension < p.d.rows) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (p.aux_leading_dimension % kAuxAlignment != 0 || !is_aligned(p.aux)) {
      return CUBLAS_STATUS_NOT_SUPPORTED;
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

MatrixProduct member_of_batch(const MatrixProduct& product, std::int64_t number) {
  const auto offset = [&](const MatrixLayout& one) {
    return number * one.batch_offset * static_cast<std::int64_t>(element_bytes(one.type));
  };
  MatrixProduct member = product;
  member.a_data = static_cast<const char*>(product.a_data) + offset(product.a);
  member.b_data = static_cast<const char*>(product.b_data) + offset(product.b);
  member.c_data = static_cast<const char*>(product.c_data) + offset(product.c);
  member.d_data = static_cast<char*>(product.d_data) + offset(product.d);
  return member;
}

void check_operands(const MatrixProduct& p) {
  check_operand("a", p.a_data, bytes_of(p.a));
  check_operand("b", p.b_data, bytes_of(p.b));
  check_operand("d", p.d_data, bytes_of(p.d));
  if (p.beta != 0) {
    check_operand("c", p.c_data, bytes_of(p.c));
  }
  for (const void* scale : {p.a_scale, p.b_scale}) {
    if (scale != nullptr) {
      check_operand("a scale", scale, sizeof(float));
    }
  }
  if (uses_bias(p)) {
    const bool along_columns = p.epilogue == CUBLASLT_EPILOGUE_BGRADB;
    const std::int64_t count = along_columns ? p.d.columns : p.d.rows;
    check_operand("the bias", p.bias, bytes_of(count, 1, count, p.bias_type));
  }
  if (p.has(kUseAux)) {
    check_operand("aux", p.aux,
                  bytes_of(p.d.rows, p.d.columns, p.aux_leading_dimension, p.aux_type));
  }
}

void compute_product(const MatrixProduct& product) {
  static Computation& kept = *new Computation;
  kept.run(product);
}

}  // namespace sim
