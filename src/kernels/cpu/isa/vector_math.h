// Computes exp, 2^x and the logistic function on vectors of floats. Pure and inline.
#pragma once

#include "src/kernels/cpu/isa/vector.h"

namespace trireme::cpu::TRIREME_ISA {

inline constexpr float kLog2E = 1.44269504F;

// Returns e^x to within about 1 ulp by Cody and Waite's reduction (Software Manual for the
// Elementary Functions, 1980, ch. 6): x = n ln2 + r with |r| <= ln2/2, and e^x = 2^n e^r with a
// minimax polynomial for e^r. The result is infinity above 88.72, and zero below -86.6 (2^-125), so
// that exp(-inf) is exactly 0. NaN stays NaN.
TRIREME_INLINE Floats exp(Floats x) {
  constexpr float kLn2High = 0.693359375F;  // 9 bits, so that n times it is exact
  constexpr float kLn2Low = -2.12194440e-4F;
  constexpr float kShift = 12582912.0F;  // 1.5 * 2^23: adding it leaves n in the low bits
  constexpr float kLeast = -86.6F;
  constexpr float kMost = 89.0F;
  const Floats inside = min(splat(kMost), max(splat(kLeast), x));  // keeps NaN
  const Floats shifted = inside * kLog2E + kShift;
  const Floats n = shifted - kShift;
  const Floats r = (inside - n * kLn2High) - n * kLn2Low;
  Floats p = splat(1.9875691500e-4F);
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = (p * r) * r + r + 1.0F;
  // The factor 2^n is applied as 2^(n-1) and 2, so that the largest results do not overflow on the
  // way.
  const Floats scale = floats_of((bits_of(shifted) << 23) + (126U << 23));
  const Floats y = (p + p) * scale;
  return x < kLeast ? Floats{} : y;
}

// Returns 2^x for x < 127: x = n + f with |f| <= 1/2, and a minimax polynomial for 2^f that is
// exactly 1 at 0. The relative error is 9.2e-8 apart from rounding. Below -125 the result is at
// most 2^-125, but not always 0. NaN stays NaN.
TRIREME_INLINE Floats exp2(Floats x) {
#if defined(__AVX512F__)
  const __m512 whole = _mm512_maskz_roundscale_ps(kAllLanes, reinterpret_cast<__m512>(x), 0);
  const Floats f = x - reinterpret_cast<Floats>(whole);
#else
  constexpr float kShift = 12582912.0F;  // 1.5 * 2^23: adding it leaves n in the low bits
  const Floats inside = max(splat(-125.0F), x);
  const Floats shifted = inside + kShift;
  const Floats f = inside - (shifted - kShift);
#endif
  Floats p = splat(1.326472731e-3F);
  p = p * f + 9.671512991e-3F;
  p = p * f + 5.550733581e-2F;
  p = p * f + 2.402224243e-1F;
  p = p * f + 6.931470037e-1F;
  p = p * f + 1.0F;
#if defined(__AVX512F__)
  return reinterpret_cast<Floats>(
      _mm512_maskz_scalef_ps(kAllLanes, reinterpret_cast<__m512>(p), whole));
#else
  return floats_of(bits_of(p) + (bits_of(shifted) << 23));
#endif
}

// Returns 1 / (1 + 2^-x) for |x| <= 126, with a relative error of about 3e-7 even where it is
// small.
TRIREME_INLINE Floats logistic2(Floats x) { return reciprocal(1.0F + exp2(-x)); }

// Returns 1 / (1 + e^-x) for any x.
TRIREME_INLINE Floats logistic(Floats x) {
  return logistic2(min(splat(126.0F), max(splat(-126.0F), x * kLog2E)));
}

}  // namespace trireme::cpu::TRIREME_ISA
