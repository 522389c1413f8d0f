// Tests the stand-in numbers of 8 bits, and the products that take them.
#include <cmath>

#include <cuda_fp8.h>
#include <gtest/gtest.h>

#include "src/device/sim/matrix_product.h"

namespace trireme {
namespace {

constexpr __nv_fp8_interpretation_t kFormats[] = {__NV_E4M3, __NV_E5M2};

float value_of(int bits, __nv_fp8_interpretation_t format) {
  return __half2float(
      __ushort_as_half(__nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(bits), format).x));
}

int bits_of(float x, __nv_fp8_interpretation_t format) {
  return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, format);
}

// These are the values of table 1 of the paper (cuda_fp8.h).
TEST(SimFp8, HasTheValuesOfTheFormats) {
  EXPECT_EQ(value_of(0x01, __NV_E4M3), 0x1p-9F);
  EXPECT_EQ(value_of(0x07, __NV_E4M3), 0.875F * 0x1p-6F);
  EXPECT_EQ(value_of(0x08, __NV_E4M3), 0x1p-6F);
  EXPECT_EQ(value_of(0x38, __NV_E4M3), 1);
  EXPECT_EQ(value_of(0xFE, __NV_E4M3), -448);
  EXPECT_TRUE(std::isnan(value_of(0x7F, __NV_E4M3)));
  EXPECT_EQ(value_of(0x01, __NV_E5M2), 0x1p-16F);
  EXPECT_EQ(value_of(0x04, __NV_E5M2), 0x1p-14F);
  EXPECT_EQ(value_of(0x3C, __NV_E5M2), 1);
  EXPECT_EQ(value_of(0xFB, __NV_E5M2), -57344);
  EXPECT_TRUE(std::isinf(value_of(0x7C, __NV_E5M2)));
  EXPECT_TRUE(std::isnan(value_of(0x7E, __NV_E5M2)));
}

TEST(SimFp8, RoundsBetweenNeighbours) {
  for (const auto format : kFormats) {
    const int largest = format == __NV_E4M3 ? 0x7E : 0x7B;
    for (int bits = 0; bits < largest; ++bits) {
      const float low = value_of(bits, format);
      const float high = value_of(bits + 1, format);
      const float middle = (low + high) / 2;
      EXPECT_LT(low, high);
      EXPECT_EQ(bits_of(low, format), bits);
      EXPECT_EQ(bits_of(-low, format), bits | 0x80);
      EXPECT_EQ(bits_of(middle, format), bits % 2 == 0 ? bits : bits + 1) << middle;
      EXPECT_EQ(bits_of(std::nextafter(middle, low), format), bits) << middle;
      EXPECT_EQ(bits_of(std::nextafter(middle, high), format), bits + 1) << middle;
    }
    EXPECT_EQ(bits_of(1e30F, format), largest);
    EXPECT_EQ(bits_of(-INFINITY, format), largest | 0x80);
    EXPECT_EQ(bits_of(NAN, format), 0x7F);
  }
}

// Returns a product that the library has; a test changes one thing of it.
sim::MatrixProduct product_of_fp8() {
  sim::MatrixProduct p;
  p.a = {CUDA_R_8F_E4M3, 64, 32, 64};  // [k, m], transposed
  p.b = {CUDA_R_8F_E5M2, 64, 48, 64};
  p.c = p.d = {CUDA_R_16BF, 32, 48, 32};
  p.transposes_a = true;
  return p;
}

TEST(SimFp8, ProductsAreThoseThatTheLibraryDocuments) {
  EXPECT_EQ(sim::check_product(product_of_fp8()), CUBLAS_STATUS_SUCCESS);
  using Change = void (*)(sim::MatrixProduct&);
  const Change refused[] = {[](sim::MatrixProduct& p) { p.a.type = CUDA_R_8F_E5M2; },
                            [](sim::MatrixProduct& p) { p.b.type = CUDA_R_16BF; },
                            [](sim::MatrixProduct& p) { p.c.type = p.d.type = CUDA_R_8F_E4M3; },
                            [](sim::MatrixProduct& p) {
                              p.transposes_a = false;
                              p.a = {CUDA_R_8F_E4M3, 32, 64, 32};
                            },
                            [](sim::MatrixProduct& p) {
                              p.transposes_b = true;
                              p.b = {CUDA_R_8F_E5M2, 48, 64, 48};
                            },
                            [](sim::MatrixProduct& p) { p.a.leading_dimension = 72; },
                            [](sim::MatrixProduct& p) { p.epilogue = CUBLASLT_EPILOGUE_DGELU; }};
  for (const Change change : refused) {
    sim::MatrixProduct p = product_of_fp8();
    change(p);
    EXPECT_EQ(sim::check_product(p), CUBLAS_STATUS_NOT_SUPPORTED);
  }
  sim::MatrixProduct accepted = product_of_fp8();
  accepted.c.type = accepted.d.type = CUDA_R_32F;
  EXPECT_EQ(sim::check_product(accepted), CUBLAS_STATUS_SUCCESS);
}

}  // namespace
}  // namespace trireme
