#include "benchmarks/gemm/product.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

TEST(Product, IsExactInEveryLayoutAndType) {
  DeviceContext context(Device::cpu(), 1);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        for (const char* pass : {"forward", "weight_gradient"}) {
          Product product(context, {"x", pass, 33, 17, 65, transpose_a, transpose_b}, dtype);
          EXPECT_EQ(product.wrong(), Product::kVerified) << "nothing is computed yet";
          product.run();
          EXPECT_EQ(product.wrong(), 0) << transpose_a << transpose_b << pass;
          product.corrupt();
          EXPECT_EQ(product.wrong(), Product::kVerified);
        }
      }
    }
  }
}

}  // namespace
}  // namespace trireme
