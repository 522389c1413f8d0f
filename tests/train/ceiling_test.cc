#include "src/train/report/ceiling.h"

#include <gtest/gtest.h>

#include "src/compute/kernel_choice.h"

namespace trireme {
namespace {

int products = 0;

Kernels counting_products() {
  static void (*matmul)(Stream&, const Matmul&) = kernels_named("reference").matmul;
  Kernels kernels = kernels_named("reference");
  kernels.matmul = [](Stream& stream, const Matmul& product) {
    ++products;
    matmul(stream, product);
  };
  return kernels;
}

// Returns the number of products in one measurement, including the first, for warm-up.
int products_of(int rounds, double enough) {
  const Kernels kernels = counting_products();
  DeviceContext context(kernels, 1);
  products = 0;
  const ProductRate rate =
      measure_product_rate(context, context.activations(), DType::f32, 8, rounds, enough);
  EXPECT_GT(rate.median, 0);
  EXPECT_GE(rate.best, rate.median);
  return products;
}

TEST(ProductRate, TimesAsManyProductsAsAskedFor) {
  EXPECT_EQ(products_of(5, 1e9), 1 + 5);
  EXPECT_EQ(products_of(1, 1e9), 1 + 1);
}

TEST(ProductRate, EndsAfterThreeWhenTheTimeIsUp) {
  EXPECT_EQ(products_of(1000, 0), 1 + 3);
  EXPECT_EQ(products_of(2, 0), 1 + 2);
}

}  // namespace
}  // namespace trireme
