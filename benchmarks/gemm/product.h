// Product holds the matrices of one product on a device, computes it with the kernels of training,
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

  // dtype: of the operands, f32, bf16 or f16. With a format, operands of bf16 are rounded to it, as
  // in training with train.products: fp8. Until run(), the result holds NaN.
  Product(DeviceContext& context, const ProductShape& shape, DType dtype,
          Fp8Format format = Fp8Format::none);

  // Queues the product on the context's stream; on the CPU, it has finished when this returns.
  void run();
  // Waits for the stream, computes kVerified elements again, and returns how many are wrong. A
  // result of 2 bytes may differ by its last place.
  std::int64_t wrong() const;
  // For tests: makes all elements of the result wrong.
  void corrupt();

 private:
  void fill(const Tensor& tensor, std::uint64_t which) const;
  double computed(std::int64_t at) const;
  double element(std::int64_t row, std::int64_t column) const;

  DeviceContext& context_;
  ProductShape shape_;
  Fp8Format format_;
  Tensor a_, b_, c_;
};

}  // namespace trireme
