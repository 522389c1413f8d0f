// Compares products of operands that are rounded to 8 bits with the reference, and the rounding
// with the definition of the formats.
#include "src/kernels/fp8.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "src/kernels/mirrored/mirrored_kernels.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/tables.h"

namespace trireme::testing {
namespace {

// Returns all numbers of a format that are not negative, in ascending order, by its definition.
std::vector<float> numbers_of(Fp8Format format) {
  const int fraction_bits = format == Fp8Format::e4m3 ? 3 : 2;
  const int bias = format == Fp8Format::e4m3 ? 7 : 15;
  std::vector<float> numbers;
  for (int bits = 0; bits <= (format == Fp8Format::e4m3 ? 0x7E : 0x7B); ++bits) {
    const int exponent = bits >> fraction_bits;
    const int fraction = bits & ((1 << fraction_bits) - 1);
    const int whole = exponent == 0 ? fraction : (1 << fraction_bits) + fraction;
    numbers.push_back(std::ldexp(static_cast<float>(whole),
                                 (exponent == 0 ? 1 : exponent) - bias - fraction_bits));
  }
  return numbers;
}

// Returns the nearest number; at a tie the one at an even place in the list.
float nearest(const std::vector<float>& numbers, float x) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    const double before = std::abs(double{x} - double{numbers[best]});
    const double here = std::abs(double{x} - double{numbers[i]});
    best = here < before || (here == before && i % 2 == 0) ? i : best;
  }
  return numbers[best];
}

TEST(Fp8, RoundsToTheNearestNumberOfTheFormat) {
  for (const Fp8Format format : {Fp8Format::e4m3, Fp8Format::e5m2}) {
    const std::vector<float> numbers = numbers_of(format);
    EXPECT_EQ(numbers.back(), fp8_largest(format));
    for (std::size_t i = 0; i + 1 < numbers.size(); ++i) {
      const float middle = (numbers[i] + numbers[i + 1]) / 2;
      for (const float x :
           {numbers[i], middle, std::nextafter(middle, 0.0F), std::nextafter(middle, 1e9F)}) {
        ASSERT_EQ(round_to_fp8(x, format), nearest(numbers, x)) << x;
        ASSERT_EQ(round_to_fp8(-x, format), -nearest(numbers, x)) << x;
      }
    }
    EXPECT_EQ(round_to_fp8(1e30F, format), numbers.back());
    EXPECT_EQ(round_to_fp8(-INFINITY, format), -numbers.back());
    EXPECT_TRUE(std::isnan(round_to_fp8(NAN, format)));
  }
}

TEST(Fp8, TheScaleUsesTheRangeOfTheFormat) {
  for (const Fp8Format format : {Fp8Format::e4m3, Fp8Format::e5m2}) {
    for (const float most : {1e-30F, 0.001F, 0.4375F, 0.875F, 1.0F, 1.75F, 1.7500001F, 3e5F}) {
      const float scale = fp8_scale(most, format);
      EXPECT_LE(most * scale, fp8_largest(format)) << most;
      EXPECT_GT(2 * most * scale, fp8_largest(format)) << most;
      EXPECT_EQ(std::exp2(std::round(std::log2(scale))), scale) << most;
    }
    EXPECT_EQ(fp8_scale(0, format), 0x1p126F);
    EXPECT_EQ(fp8_scale(INFINITY, format), 1);
    EXPECT_EQ(fp8_scale(NAN, format), 1);
  }
}

struct Shape {
  std::int64_t m, n, k;
  bool transpose_a, transpose_b;
};

struct Outcome {
  Array c, most_a, most_b;
};

struct Ways {
  Fp8Format a = Fp8Format::e4m3;
  Fp8Format b = Fp8Format::e4m3;
  Epilogue epilogue = Epilogue::none;
  bool f32_out = false;
  float scale = 0;         // of both; 0 means current scaling
  bool in_memory = false;  // whether the scale is given, even if it is 0
};

Outcome product(const Shape& s, const Ways& ways, const Kernels& kernels) {
  Stream stream = test_stream(1);
  const Array a = Array::random(s.m * s.k, DType::bf16, 1, 3);
  const Array b = Array::random(s.k * s.n, DType::bf16, 2, 0.01);
  const Array bias = Array::random(s.n, DType::bf16, 3);
  Array aux = Array::random(s.m * s.n, DType::bf16, 4);
  Array scale(1, DType::f32);
  scale.set(0, static_cast<double>(ways.scale));
  const ConstView given = ways.in_memory ? ConstView(scale.view()) : ConstView{};
  Outcome result{Array::random(s.m * s.n, ways.f32_out ? DType::f32 : DType::bf16, 5),
                 Array(1, DType::f32), Array(1, DType::f32)};
  result.most_b.set(0, 1e6);
  kernels.matmul(stream, {.m = s.m,
                          .n = s.n,
                          .k = s.k,
                          .a = a,
                          .b = b,
                          .c = result.c,
                          .bias = ways.f32_out ? ConstView{} : bias.view(),
                          .aux = ways.epilogue == Epilogue::none ? View{} : aux.view(),
                          .transpose_a = s.transpose_a,
                          .transpose_b = s.transpose_b,
                          .accumulate = ways.f32_out,
                          .epilogue = ways.epilogue,
                          .fp8_a = {.format = ways.a, .scale = given, .most = result.most_a},
                          .fp8_b = {.format = ways.b, .scale = given, .most = result.most_b}});
  return result;
}

// Both round to the same numbers of 8 bits, so that only the sums differ: Hopper adds products of 8
// bits with fewer bits than f32 (DeepSeek-V3 Technical Report, 2024, section 3.3.2). One product
// that is missing from a sum is more than what is allowed.
TEST(Fp8, ProductsAgreeWithTheReference) {
  constexpr Shape kShapes[] = {{16, 16, 16, false, false},
                               {48, 80, 112, false, true},
                               {64, 144, 272, true, false},
                               {272, 32, 64, true, true},
                               {128, 64, 2064, false, false}};
  const Ways ways[] = {{},
                       {.a = Fp8Format::e5m2},
                       {.b = Fp8Format::e5m2, .f32_out = true},
                       {.epilogue = Epilogue::gelu},
                       {.a = Fp8Format::e5m2, .epilogue = Epilogue::gelu_backward},
                       {.scale = 1024, .in_memory = true}};
  for (const Shape& shape : kShapes) {
    for (const Ways& way : ways) {
      const Outcome expected = product(shape, way, kernels_named("reference"));
      const Outcome result = product(shape, way, mirrored_kernels(Placement::aligned));
      double largest = 0;
      for (std::int64_t i = 0; i < expected.c.count(); ++i) {
        largest = std::max(largest, std::abs(expected.c[i]));
      }
      for (std::int64_t i = 0; i < expected.c.count(); ++i) {
        const double room =
            way.f32_out ? 1e-3 * largest : std::abs(expected.c[i]) / 64 + 2e-3 * largest;
        ASSERT_NEAR(result.c[i], expected.c[i], room)
            << shape.m << " x " << shape.n << " x " << shape.k << ", element " << i;
      }
      EXPECT_TRUE(result.most_a.same_bits(expected.most_a));
      EXPECT_GT(result.most_a[0], 3);
      EXPECT_EQ(result.most_b[0], 1e6) << "it is only raised";
    }
  }
}

// A product with another format has other bits.
TEST(Fp8, ProductsAreRounded) {
  const Outcome whole =
      product({64, 64, 64, false, false}, {}, mirrored_kernels(Placement::aligned));
  const Outcome coarse = product({64, 64, 64, false, false}, {.a = Fp8Format::e5m2},
                                 mirrored_kernels(Placement::aligned));
  EXPECT_FALSE(whole.c.same_bits(coarse.c));
}

// This is how operands without a history have a scale.
TEST(Fp8, AScaleOfZeroIsACurrentOne) {
  const Shape shape{48, 80, 112, false, true};
  for (const Kernels* table :
       {&kernels_named("reference"), &mirrored_kernels(Placement::aligned)}) {
    const Outcome current = product(shape, {}, *table);
    const Outcome zero = product(shape, {.in_memory = true}, *table);
    const Outcome coarse = product(shape, {.scale = 0.0625F, .in_memory = true}, *table);
    EXPECT_TRUE(zero.c.same_bits(current.c));
    EXPECT_FALSE(coarse.c.same_bits(current.c));
  }
}

TEST(Fp8, InfinityBecomesNan) {
  Stream stream = test_stream(1);
  Array a = Array::random(16 * 16, DType::bf16, 1);
  a.set(5, INFINITY);
  const Array b = Array::random(16 * 16, DType::bf16, 2);
  Array c(16 * 16, DType::f32);
  mirrored_kernels(Placement::aligned)
      .matmul(stream, {.m = 16,
                       .n = 16,
                       .k = 16,
                       .a = a,
                       .b = b,
                       .c = c,
                       .fp8_a = {.format = Fp8Format::e5m2},
                       .fp8_b = {.format = Fp8Format::e4m3}});
  for (std::int64_t i = 0; i < c.count(); ++i) {
    EXPECT_EQ(std::isnan(c[i]), i < 16) << i;
  }
}

}  // namespace
}  // namespace trireme::testing
