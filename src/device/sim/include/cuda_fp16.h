// Stand-in for CUDA's header of the same name: IEEE half-precision numbers and pairs of them,
// without implicit conversions and operators.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include <cuda_runtime.h>

struct __half {
  unsigned short bits;
};
struct alignas(4) __half2 {
  __half x, y;
};

inline unsigned short __half_as_ushort(__half x) { return x.bits; }
inline __half __ushort_as_half(unsigned short bits) { return {bits}; }

inline float __half2float(__half x) {
  const std::uint32_t sign = (x.bits & 0x8000u) << 16;
  const std::uint32_t exponent = x.bits >> 10 & 0x1Fu;
  const std::uint32_t fraction = x.bits & 0x3FFu;
  if (exponent == 0) {  // zero or subnormal: a multiple of 2^-24
    const float size = std::ldexp(static_cast<float>(fraction), -24);
    return sign != 0 ? -size : size;
  }
  const std::uint32_t wide = exponent == 31 ? 255u : exponent + 112u;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}
// Rounds to the nearest, ties to even; beyond the largest number to infinity.
inline __half __float2half_rn(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<unsigned short>(bits >> 16 & 0x8000u);
  const std::uint32_t size = bits & 0x7FFFFFFFu;
  if (size > 0x7F800000u) {
    return {0x7FFF};  // NaN
  }
  if (size >= 0x477FF000u) {  // 65520 and more
    return {static_cast<unsigned short>(sign | 0x7C00u)};
  }
  if (size < 0x38800000u) {  // below 2^-14: round to a multiple of 2^-24
    const float steps = std::nearbyint(std::ldexp(std::bit_cast<float>(size), 24));
    return {static_cast<unsigned short>(sign | static_cast<unsigned short>(steps))};
  }
  const std::uint32_t rounded = size + 0xFFFu + (size >> 13 & 1u) - (112u << 23);
  return {static_cast<unsigned short>(sign | rounded >> 13)};
}
inline __half __float2half(float x) { return __float2half_rn(x); }

inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
inline __half2 __floats2half2_rn(float x, float y) {
  return {__float2half_rn(x), __float2half_rn(y)};
}
inline float2 __half22float2(__half2 pair) { return {__half2float(pair.x), __half2float(pair.y)}; }
inline float __low2float(__half2 pair) { return __half2float(pair.x); }
inline float __high2float(__half2 pair) { return __half2float(pair.y); }
