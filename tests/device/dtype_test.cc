#include "src/device/dtype.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/base/philox.h"

namespace trireme {
namespace {

TEST(DType, NamesAndSizes) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64, DType::i32, DType::i64, DType::u8,
                            DType::u16, DType::u32, DType::f16}) {
    EXPECT_EQ(parse_dtype(dtype_name(dtype)), dtype);
  }
  EXPECT_EQ(dtype_name(DType::bf16), "BF16");
  EXPECT_EQ(size_of(DType::bf16), 2);
  EXPECT_EQ(dtype_name(DType::f16), "F16");
  EXPECT_EQ(size_of(DType::f16), 2);
  EXPECT_EQ(size_of(DType::f64), 8);
  for (const char* wrong : {"", "f32", "f16", "F8_E4M3", "BF16 "}) {
    EXPECT_THROW(parse_dtype(wrong), DataError) << wrong;
  }
}

TEST(Bf16, EveryValueComesBack) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const bf16 x{static_cast<std::uint16_t>(bits)};
    const float wide = to_float(x);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(to_float(to_bf16(wide))));
    } else {
      EXPECT_EQ(to_bf16(wide).bits, x.bits);
    }
  }
}

// Returns the nearer of the two neighbours by their distances; at a tie, the one with an even last
// bit.
std::uint16_t nearest(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto low = static_cast<std::uint16_t>(bits >> 16);  // towards zero
  const auto high = static_cast<std::uint16_t>(low + 1);
  const double to_low = std::abs(double{x} - double{to_float(bf16{low})});
  // The neighbour of the largest finite value stands for 2^128.
  const double high_value = std::isinf(to_float(bf16{high})) ? std::copysign(0x1p128, double{x})
                                                             : double{to_float(bf16{high})};
  const double to_high = std::abs(double{x} - high_value);
  if (to_low != to_high) {
    return to_low < to_high ? low : high;
  }
  return low % 2 == 0 ? low : high;
}

TEST(Bf16, RoundsToNearestEven) {
  for (std::uint32_t i = 0; i < 200000; ++i) {
    for (const std::uint32_t bits : philox({i, 0, 0, 0}, {1, 2})) {
      const float x = std::bit_cast<float>(bits);
      if (std::isfinite(x)) {
        ASSERT_EQ(to_bf16(x).bits, nearest(x)) << std::hexfloat << x;
      }
    }
  }
  // Tries ties and the numbers beside them, in every exponent.
  for (std::uint32_t exponent = 0; exponent < 255; ++exponent) {
    for (const std::uint32_t mantissa : {0x007FFFU, 0x008000U, 0x008001U, 0x017FFFU, 0x018000U,
                                         0x018001U, 0x7F7FFFU, 0x7F8000U, 0x7FFFFFU}) {
      const float x = std::bit_cast<float>(exponent << 23 | mantissa);
      ASSERT_EQ(to_bf16(x).bits, nearest(x)) << std::hexfloat << x;
      ASSERT_EQ(to_bf16(-x).bits, nearest(x) | 0x8000) << std::hexfloat << x;
    }
  }
}

TEST(Bf16, InfinityAndNaN) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(to_float(to_bf16(infinity)), infinity);
  EXPECT_EQ(to_float(to_bf16(-infinity)), -infinity);
  EXPECT_EQ(to_float(to_bf16(std::numeric_limits<float>::max())), infinity);
  // A NaN whose payload lies in the lower half only must not turn into infinity.
  EXPECT_TRUE(std::isnan(to_float(to_bf16(std::bit_cast<float>(0x7F800001)))));
  EXPECT_TRUE(std::isnan(to_float(to_bf16(std::bit_cast<float>(0xFFFFFFFF)))));
}

TEST(F16, EveryValueComesBack) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const f16 x{static_cast<std::uint16_t>(bits)};
    const float wide = to_float(x);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(to_float(to_f16(wide))));
    } else {
      EXPECT_EQ(to_f16(wide).bits, x.bits);
    }
  }
  EXPECT_EQ(to_float(f16{0x0001}), 0x1p-24F);
  EXPECT_EQ(to_float(f16{0x3C00}), 1.0F);
  EXPECT_EQ(to_float(f16{0xFBFF}), -65504.0F);
}

// Returns the nearer of x's two neighbours among the f16 numbers that are not negative. The
// neighbour above the largest of them stands for 2^16.
std::uint16_t nearest_half(float x) {
  std::uint16_t low = 0;  // the largest number that is not above x, found bit by bit
  for (std::uint16_t bit = 0x4000; bit != 0; bit >>= 1) {
    const auto higher = static_cast<std::uint16_t>(low | bit);
    low = higher <= 0x7BFF && to_float(f16{higher}) <= x ? higher : low;
  }
  const auto high = static_cast<std::uint16_t>(low + 1);
  const double high_value = high == 0x7C00 ? 0x1p16 : double{to_float(f16{high})};
  const double to_low = double{x} - double{to_float(f16{low})};
  const double to_high = high_value - double{x};
  if (to_low != to_high) {
    return to_low < to_high ? low : high;
  }
  return low % 2 == 0 ? low : high;
}

TEST(F16, RoundsToNearestEven) {
  for (std::uint32_t exponent = 90; exponent < 160; ++exponent) {
    for (std::uint32_t i = 0; i < 500; ++i) {
      for (const std::uint32_t word : philox({i, exponent, 0, 0}, {1, 2})) {
        const float x = std::bit_cast<float>(exponent << 23 | (word & 0x7FFFFFU));
        ASSERT_EQ(to_f16(x).bits, nearest_half(x)) << std::hexfloat << x;
        ASSERT_EQ(to_f16(-x).bits, nearest_half(x) | 0x8000) << std::hexfloat << x;
      }
    }
  }
  // These are ties, and the floats beside them.
  for (std::uint32_t bits = 0; bits < 0x7BFF; ++bits) {
    const float low = to_float(f16{static_cast<std::uint16_t>(bits)});
    const float high = to_float(f16{static_cast<std::uint16_t>(bits + 1)});
    const float middle = (low + high) / 2;
    for (const float x : {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, 1e9F)}) {
      ASSERT_EQ(to_f16(x).bits, nearest_half(x)) << std::hexfloat << x;
    }
  }
}

TEST(F16, InfinityAndNaN) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(to_float(to_f16(infinity)), infinity);
  EXPECT_EQ(to_float(to_f16(65519.99F)), 65504.0F);
  EXPECT_EQ(to_float(to_f16(-65520.0F)), -infinity);
  EXPECT_TRUE(std::isnan(to_float(to_f16(std::bit_cast<float>(0x7F800001)))));
  EXPECT_TRUE(std::isnan(to_float(to_f16(std::bit_cast<float>(0xFFFFFFFF)))));
}

}  // namespace
}  // namespace trireme
