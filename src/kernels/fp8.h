// The arithmetic of the formats of 8 bits, for the host and for kernels. Pure functions.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>

#include "src/kernels/kernel_arguments.h"

namespace trireme {

// Returns the largest number of the format, which is 1.75 * 2^8 or 1.75 * 2^15.
constexpr float fp8_largest(Fp8Format format) {
  return format == Fp8Format::e4m3 ? 448.0F : 57344.0F;
}

// Returns the largest power of two, from 2^-126 to 2^126, whose product with `most` does not exceed
// the format. Returns 1 for infinity and NaN. most: not negative.
constexpr float fp8_scale(float most, Fp8Format format) {
  const auto bits = std::bit_cast<std::uint32_t>(most);
  if (bits >= 0x7F800000U) {
    return 1;
  }
  const int exponent = static_cast<int>(bits >> 23) - 127;
  const int room = format == Fp8Format::e4m3 ? 8 : 15;
  const int wanted = room - exponent - ((bits & 0x7FFFFFU) > 0x600000U ? 1 : 0);
  const int power = wanted < -126 ? -126 : (wanted > 126 ? 126 : wanted);
  return std::bit_cast<float>(static_cast<std::uint32_t>(power + 127) << 23);
}

// Returns the number of the format that is nearest to x, ties to the even one. What exceeds the
// format, also infinity, becomes its largest number. NaN stays NaN. On the host alone.
inline float round_to_fp8(float x, Fp8Format format) {
  if (x == 0 || std::isnan(x)) {
    return x;
  }
  if (std::isinf(x)) {
    return std::copysign(fp8_largest(format), x);
  }
  const int fraction_bits = format == Fp8Format::e4m3 ? 3 : 2;
  const int least_exponent = format == Fp8Format::e4m3 ? -6 : -14;
  const float step = std::ldexp(1.0F, std::max(std::ilogb(x), least_exponent) - fraction_bits);
  const float rounded = std::nearbyint(std::abs(x) / step) * step;
  return std::copysign(std::min(rounded, fp8_largest(format)), x);
}

}  // namespace trireme
