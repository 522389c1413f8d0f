// Stand-in for CUDA's header of the same name: conversions to and from numbers of 8 bits, with
// saturation (Micikevicius et al., FP8 Formats for Deep Learning, 2022).
#pragma once

#include <cmath>

#include <cuda_fp16.h>

using __nv_fp8_storage_t = unsigned char;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };
struct __half_raw {
  unsigned short x;
};

// Rounds to the nearest, ties to even. With __NV_SATFINITE, which is all that the stand-in has,
// infinity becomes the largest number, and NaN stays NaN.
inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t,
                                                __nv_fp8_interpretation_t format) {
  const int fraction_bits = format == __NV_E4M3 ? 3 : 2;
  const int least_exponent = format == __NV_E4M3 ? -6 : -14;
  const int largest = format == __NV_E4M3 ? 0x7E : 0x7B;
  const int sign = std::signbit(x) ? 0x80 : 0;
  const float size = std::fabs(x);
  if (std::isnan(x)) {
    return 0x7F;
  }
  if (size >= 65536) {
    return static_cast<__nv_fp8_storage_t>(sign | largest);
  }
  if (size == 0) {
    return static_cast<__nv_fp8_storage_t>(sign);
  }
  const int exponent = std::ilogb(size) < least_exponent ? least_exponent : std::ilogb(size);
  // In steps of the last bit; one more than all ones carries into the exponent, as it should.
  const int steps = static_cast<int>(std::nearbyint(std::ldexp(size, fraction_bits - exponent)));
  const int bits = ((exponent - least_exponent) << fraction_bits) + steps;
  return static_cast<__nv_fp8_storage_t>(sign | (bits < largest ? bits : largest));
}

// All numbers of 8 bits are half-precision numbers, too.
inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t format) {
  if (format == __NV_E5M2) {
    return {static_cast<unsigned short>(x << 8)};
  }
  const int sign = (x & 0x80) << 8;
  if ((x & 0x7F) == 0x7F) {
    return {0x7FFF};
  }
  const int exponent = x >> 3 & 0xF;
  const int fraction = x & 7;
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -9)
                                   : std::ldexp(static_cast<float>(8 + fraction), exponent - 10);
  return {static_cast<unsigned short>(sign | __half_as_ushort(__float2half_rn(size)))};
}
