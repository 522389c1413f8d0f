// Product holds the matrices of one product on the CPU, computes it with the kernels of training,
// and verifies the result. The operands are small whole numbers, whose products and sums fp32
// represents exactly. The benchmark owns it and uses it on one thread; the context outlives it.
#pragma once

#include "benchmarks/gemm/product_shapes.h"
#include "src/compute/device_context.h"
#include "src/tensor/tensor.h"

namespace trireme {

class Product {
 public:
  static constexpr int kVerified = 64;

  // dtype: of the operands, f32 or bf16. Until run(), the result holds NaN.
  Product(DeviceContext& context, const ProductShape& shape, DType dtype);

  void run();
  // Computes kVerified elements again, and returns how many are wrong. A result in bf16 may differ
  // by its last place.
  std::int64_t wrong() const;
  // For tests: makes all elements of the result wrong.
  void corrupt();

 private:
  void fill(const Tensor& tensor, std::uint64_t which) const;
  double element(std::int64_t row, std::int64_t column) const;

  DeviceContext& context_;
  ProductShape shape_;
  Tensor a_, b_, c_;
};

}  // namespace trireme
