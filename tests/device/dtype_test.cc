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
                            DType::u16, DType::u32}) {
    EXPECT_EQ(parse_dtype(dtype_name(dtype)), dtype);
  }
  EXPECT_EQ(dtype_name(DType::bf16), "BF16");
  EXPECT_EQ(size_of(DType::bf16), 2);
  EXPECT_EQ(size_of(DType::f64), 8);
  for (const char* wrong : {"", "f32", "F16", "F8_E4M3", "BF16 "}) {
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

// The nearer of the two neighbours, by the distances themselves; at a tie the one with an even last
// bit.
std::uint16_t nearest(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto low = static_cast<std::uint16_t>(bits >> 16);  // towards zero
  const auto high = static_cast<std::uint16_t>(low + 1);
  const double to_low = std::abs(double{x} - double{to_float({low})});
  // The neighbour of the largest finite value stands for 2^128.
  const double high_value =
      std::isinf(to_float({high})) ? std::copysign(0x1p128, double{x}) : double{to_float({high})};
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
  // Ties, and what lies beside them, in every exponent.
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

}  // namespace
}  // namespace trireme
