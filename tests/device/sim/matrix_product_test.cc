// Compares cuBLASLt's products with a plain triple loop.
#include "src/device/sim/matrix_product.h"

#include <algorithm>
#include <cmath>

#include "src/device/sim/fault.h"
#include "tests/device/sim/device_array.h"

namespace trireme {
namespace {

void expect_done(cublasStatus_t status) { EXPECT_EQ(status, CUBLAS_STATUS_SUCCESS); }

// Returns numbers that bf16 holds exactly.
std::vector<float> some_numbers(std::size_t count, int seed) {
  std::vector<float> numbers(count);
  for (std::size_t at = 0; at < count; ++at) {
    numbers[at] = static_cast<float>((static_cast<int>(at) * 37 + seed * 11) % 31 - 15) / 16;
  }
  return numbers;
}

// Matrix is a column-major matrix of either type, on the device and as floats.
class Matrix {
 public:
  Matrix(cudaDataType type, std::int64_t rows, std::int64_t columns, int seed)
      : type_(type),
        rows_(rows),
        values_(some_numbers(static_cast<std::size_t>(rows * columns), seed)),
        bytes_(values_.size() * sim::element_bytes(type)) {
    std::vector<std::byte> stored(values_.size() * sim::element_bytes(type));
    sim::write_elements(stored.data(), type, 0, static_cast<std::int64_t>(values_.size()),
                        values_.data());
    bytes_.write(stored);
    expect_done(cublasLtMatrixLayoutCreate(&layout_, type, static_cast<std::uint64_t>(rows),
                                           static_cast<std::uint64_t>(columns), rows));
  }
  ~Matrix() { cublasLtMatrixLayoutDestroy(layout_); }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;

  cublasLtMatrixLayout_t layout() const { return layout_; }
  void* data() { return bytes_.data(); }
  // Returns an element's initial value.
  double at(std::int64_t row, std::int64_t column) const {
    return values_[static_cast<std::size_t>(column * rows_ + row)];
  }
  double at(std::int64_t row, std::int64_t column, bool transposed) const {
    return transposed ? at(column, row) : at(row, column);
  }
  std::vector<float> read() {
    const std::vector<std::byte> stored = bytes_.read();
    std::vector<float> values(values_.size());
    sim::read_elements(stored.data(), type_, 0, static_cast<std::int64_t>(values.size()),
                       values.data());
    return values;
  }

 private:
  cudaDataType type_;
  std::int64_t rows_;
  std::vector<float> values_;
  DeviceArray<std::byte> bytes_;
  cublasLtMatrixLayout_t layout_ = nullptr;
};

struct Case {
  std::int64_t m = 40;
  std::int64_t n = 11;
  std::int64_t k = 50;
  bool transposes_a = false;
  bool transposes_b = false;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  cudaDataType type = CUDA_R_32F;
  cudaDataType d_type = CUDA_R_32F;
  float beta = 0;
};

class Product {
 public:
  explicit Product(const Case& c)
      : c_(c),
        a_(c.type, c.transposes_a ? c.k : c.m, c.transposes_a ? c.m : c.k, 1),
        b_(c.type, c.transposes_b ? c.n : c.k, c.transposes_b ? c.k : c.n, 2),
        d_(c.d_type, c.m, c.n, 3),
        bias_(c.d_type, std::max(c.m, c.n), 1, 4),
        aux_(c.d_type, c.m, c.n, 5) {
    expect_done(cublasLtCreate(&handle_));
    expect_done(cublasLtMatmulDescCreate(&description_, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    expect_done(cublasLtMatmulPreferenceCreate(&preference_));
    set(CUBLASLT_MATMUL_DESC_TRANSA, c.transposes_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, c.transposes_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, c.epilogue);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias_.data());
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux_.data());
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, c.m);
  }
  ~Product() {
    cublasLtMatmulPreferenceDestroy(preference_);
    cublasLtMatmulDescDestroy(description_);
    cublasLtDestroy(handle_);
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, T value) {
    expect_done(cublasLtMatmulDescSetAttribute(description_, attribute, &value, sizeof value));
  }
  void allow_workspace(std::uint64_t bytes) {
    expect_done(cublasLtMatmulPreferenceSetAttribute(
        preference_, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes));
  }
  cublasStatus_t choose() {
    int found = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle_, description_, a_.layout(), b_.layout(), d_.layout(),
                                       d_.layout(), preference_, 1, &choice_, &found);
    EXPECT_EQ(found, status == CUBLAS_STATUS_SUCCESS ? 1 : 0);
    return status;
  }
  cublasStatus_t multiply(void* workspace = nullptr, std::size_t bytes = 0) {
    const float alpha = 1;
    return cublasLtMatmul(handle_, description_, &alpha, a_.data(), a_.layout(), b_.data(),
                          b_.layout(), &c_.beta, d_.data(), d_.layout(), d_.data(), d_.layout(),
                          &choice_.algo, workspace, bytes, nullptr);
  }
  void expect_right();

  std::size_t workspace_bytes() const { return choice_.workspaceSize; }
  Matrix& d() { return d_; }

 private:
  double sum(std::int64_t i, std::int64_t j) const {
    double sum = 0;
    for (std::int64_t l = 0; l < c_.k; ++l) {
      sum += a_.at(i, l, c_.transposes_a) * b_.at(l, j, c_.transposes_b);
    }
    return sum;
  }
  std::vector<double> right_bias_gradient(const std::vector<double>& d) const;

  Case c_;
  Matrix a_;
  Matrix b_;
  Matrix d_;
  Matrix bias_;
  Matrix aux_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t description_ = nullptr;
  cublasLtMatmulPreference_t preference_ = nullptr;
  cublasLtMatmulHeuristicResult_t choice_ = {};
};

double gelu_of(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double gelu_slope(double x) {
  const double step = 1e-5;
  return (gelu_of(x + step) - gelu_of(x - step)) / (2 * step);
}

void expect_close(const std::vector<float>& seen, const std::vector<double>& right,
                  double tolerance) {
  for (std::size_t at = 0; at < right.size(); ++at) {
    ASSERT_NEAR(seen[at], right[at], tolerance * (1 + std::abs(right[at]))) << "element " << at;
  }
}

std::vector<double> Product::right_bias_gradient(const std::vector<double>& d) const {
  const bool of_b = c_.epilogue == CUBLASLT_EPILOGUE_BGRADB;
  std::vector<double> gradient(static_cast<std::size_t>(of_b ? c_.n : c_.m), 0);
  for (std::size_t at = 0; at < gradient.size(); ++at) {
    const auto row = static_cast<std::int64_t>(at);
    for (std::int64_t j = 0; j < c_.n && c_.epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD; ++j) {
      gradient[at] += d[static_cast<std::size_t>(j * c_.m + row)];
    }
    for (std::int64_t l = 0; l < c_.k && c_.epilogue != CUBLASLT_EPILOGUE_DGELU_BGRAD; ++l) {
      gradient[at] += of_b ? b_.at(l, row, c_.transposes_b) : a_.at(row, l, c_.transposes_a);
    }
  }
  return gradient;
}

void Product::expect_right() {
  std::vector<double> d;
  std::vector<double> aux;
  for (std::int64_t j = 0; j < c_.n; ++j) {
    for (std::int64_t i = 0; i < c_.m; ++i) {
      double v = sum(i, j) + static_cast<double>(c_.beta) * d_.at(i, j);
      v += (c_.epilogue & sim::kAddBias) != 0 ? bias_.at(i, 0) : 0;
      aux.push_back(v);
      v = (c_.epilogue & sim::kApplyGelu) != 0 ? gelu_of(v) : v;
      v *= (c_.epilogue & sim::kGeluGradient) != 0 ? gelu_slope(aux_.at(i, j)) : 1;
      d.push_back(v);
    }
  }
  const double tolerance = c_.d_type == CUDA_R_32F ? 1e-5 : 5e-3;
  expect_close(d_.read(), d, tolerance);
  if (c_.epilogue == CUBLASLT_EPILOGUE_GELU_AUX || c_.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS) {
    expect_close(aux_.read(), aux, tolerance);
  }
  if (c_.epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD || c_.epilogue == CUBLASLT_EPILOGUE_BGRADA ||
      c_.epilogue == CUBLASLT_EPILOGUE_BGRADB) {
    expect_close(bias_.read(), right_bias_gradient(d), tolerance);
  }
}

TEST(SimProduct, AgreesWithATripleLoop) {
  for (const cublasLtEpilogue_t epilogue :
       {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_GELU,
        CUBLASLT_EPILOGUE_GELU_BIAS, CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
        CUBLASLT_EPILOGUE_DGELU, CUBLASLT_EPILOGUE_DGELU_BGRAD, CUBLASLT_EPILOGUE_BGRADA,
        CUBLASLT_EPILOGUE_BGRADB}) {
    for (const bool transposes_a : {false, true}) {
      for (const bool transposes_b : {false, true}) {
        for (const auto& [type, d_type] :
             {std::pair(CUDA_R_32F, CUDA_R_32F), std::pair(CUDA_R_16BF, CUDA_R_16BF),
              std::pair(CUDA_R_16BF, CUDA_R_32F), std::pair(CUDA_R_16F, CUDA_R_16F)}) {
          SCOPED_TRACE(testing::Message()
                       << "epilogue " << epilogue << ", transposed " << transposes_a << transposes_b
                       << ", types " << type << ' ' << d_type);
          Case one;
          one.transposes_a = transposes_a;
          one.transposes_b = transposes_b;
          one.epilogue = epilogue;
          one.type = type;
          one.d_type = d_type;
          Product product(one);
          expect_done(product.choose());
          expect_done(product.multiply());
          product.expect_right();
        }
      }
    }
  }
}

TEST(SimProduct, AddsToTheEarlierResult) {
  Case one;
  one.type = CUDA_R_16BF;
  one.beta = 1;
  Product product(one);
  expect_done(product.choose());
  expect_done(product.multiply());
  product.expect_right();
}

TEST(SimProduct, AnElementDoesNotDependOnTheShape) {
  std::vector<float> whole;
  for (const std::int64_t n : {40, 3, 1}) {
    Case one;
    one.n = n;
    one.m = 100;
    Product product(one);
    expect_done(product.choose());
    expect_done(product.multiply());
    const std::vector<float> seen = product.d().read();
    whole = whole.empty() ? seen : whole;
    EXPECT_TRUE(std::equal(seen.begin(), seen.end(), whole.begin())) << n;
  }
}

TEST(SimProduct, RefusesWhatTheLibraryDocuments) {
  Case gelu;
  gelu.epilogue = CUBLASLT_EPILOGUE_GELU_AUX;
  gelu.m = 41;  // aux needs a multiple of 8
  EXPECT_EQ(Product(gelu).choose(), CUBLAS_STATUS_NOT_SUPPORTED);
  gelu.m = 40;
  Product product(gelu);
  product.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t{32});
  EXPECT_EQ(product.choose(), CUBLAS_STATUS_INVALID_VALUE);
  product.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t{40});
  product.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, static_cast<void*>(nullptr));
  EXPECT_EQ(product.choose(), CUBLAS_STATUS_INVALID_VALUE);
  Case types;
  types.d_type = CUDA_R_16BF;  // of fp32 matrices
  EXPECT_EQ(Product(types).choose(), CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST(SimProduct, NeedsTheWorkspaceThatItAskedFor) {
  Product product(Case{});
  product.allow_workspace(1 << 20);
  expect_done(product.choose());
  EXPECT_GT(product.workspace_bytes(), 0u);
  EXPECT_EQ(product.multiply(), CUBLAS_STATUS_INVALID_VALUE);
  DeviceArray<std::byte> workspace(product.workspace_bytes());
  expect_done(product.multiply(workspace.data(), product.workspace_bytes()));
  product.expect_right();
}

TEST(SimProduct, FailsWhereAsked) {
  Product product(Case{});
  expect_done(product.choose());
  sim::set_faults("cublasLtMatmul:1:CUBLAS_STATUS_EXECUTION_FAILED");
  EXPECT_EQ(product.multiply(), CUBLAS_STATUS_EXECUTION_FAILED);
  sim::set_faults("");
  expect_done(product.multiply());
}

TEST(SimProductDeathTest, OperandsOutOfBoundsDie) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Case one;
  one.epilogue = CUBLASLT_EPILOGUE_BIAS;
  Product product(one);
  expect_done(product.choose());
  DeviceArray<float> small(8);
  product.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<void*>(small.data()));
  EXPECT_DEATH(product.multiply(), "the bias: 160 bytes do not lie within an allocation");
}

}  // namespace
}  // namespace trireme
