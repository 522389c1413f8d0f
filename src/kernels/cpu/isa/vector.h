// Defines a thin vector of floats, as wide as the instruction set's registers, based on the
// compiler's vector extensions: arithmetic and comparisons are the plain operators. All functions
// are pure and inline. bf16 is converted on load and store, exactly as by to_float() and to_bf16().
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#include <immintrin.h>

#include "src/device/dtype.h"

namespace trireme::cpu::TRIREME_ISA {

#if defined(__AVX512F__)
inline constexpr int kLanes = 16;
// GCC 12 warns about its own unmasked intrinsics, so the masked forms are used.
inline constexpr __mmask16 kAllLanes = 0xFFFF;
#elif defined(__AVX2__)
inline constexpr int kLanes = 8;
#else
inline constexpr int kLanes = 4;
#endif

typedef float Floats __attribute__((vector_size(4 * kLanes)));
typedef std::int32_t Ints __attribute__((vector_size(4 * kLanes)));
typedef std::uint32_t Words __attribute__((vector_size(4 * kLanes)));
typedef std::uint16_t Halves __attribute__((vector_size(2 * kLanes)));

#define TRIREME_INLINE [[gnu::always_inline]] inline

TRIREME_INLINE Floats splat(float x) { return Floats{} + x; }
TRIREME_INLINE Words bits_of(Floats x) { return reinterpret_cast<Words>(x); }
TRIREME_INLINE Floats floats_of(Words x) { return reinterpret_cast<Floats>(x); }

TRIREME_INLINE Floats load(const float* p) {
  Floats x;
  std::memcpy(&x, p, sizeof x);
  return x;
}
TRIREME_INLINE void store(float* p, Floats x) { std::memcpy(p, &x, sizeof x); }

TRIREME_INLINE Words widened(Halves x) {
#if defined(__AVX512F__)
  return reinterpret_cast<Words>(
      _mm512_maskz_cvtepu16_epi32(kAllLanes, reinterpret_cast<__m256i>(x)));
#elif defined(__AVX2__)
  return reinterpret_cast<Words>(_mm256_cvtepu16_epi32(reinterpret_cast<__m128i>(x)));
#else
  return __builtin_convertvector(x, Words);
#endif
}
TRIREME_INLINE Floats load(const bf16* p) {
  Halves x;
  std::memcpy(&x, p, sizeof x);
  return floats_of(widened(x) << 16);
}

// Returns the floats rounded to bf16 (nearest, ties to even), in the lower half of each lane. NaN
// stays NaN.
TRIREME_INLINE Words rounded_to_bf16(Floats x) {
  const Words bits = bits_of(x);
  const Words rounded = bits + 0x7FFF + ((bits >> 16) & 1);
  return (x == x ? rounded : (bits | 0x400000)) >> 16;
}

TRIREME_INLINE Halves narrowed(Words x) {
#if defined(__AVX512F__)
  return reinterpret_cast<Halves>(
      _mm512_maskz_cvtepi32_epi16(kAllLanes, reinterpret_cast<__m512i>(x)));
#else
  // The saturating pack leaves sign-extended 16-bit values unchanged.
  const Ints wide = reinterpret_cast<Ints>(x << 16) >> 16;
#if defined(__AVX2__)
  const __m256i all = reinterpret_cast<__m256i>(wide);
  return reinterpret_cast<Halves>(
      _mm_packs_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1)));
#else
  const __m128i packed = _mm_packs_epi32(reinterpret_cast<__m128i>(wide), _mm_setzero_si128());
  Halves low;
  std::memcpy(&low, &packed, sizeof low);
  return low;
#endif
#endif
}

TRIREME_INLINE void store(bf16* p, Floats x) {
  const Halves half = narrowed(rounded_to_bf16(x));
  std::memcpy(p, &half, sizeof half);
}

// These use the first n < kLanes elements. The other lanes are zero after a load, and a store
// leaves their memory alone.
template <class T>
TRIREME_INLINE Floats load_part(const T* p, std::int64_t n) {
  T lanes[kLanes] = {};
  std::memcpy(lanes, p, static_cast<std::size_t>(n) * sizeof(T));
  return load(lanes);
}
template <class T>
TRIREME_INLINE void store_part(T* p, Floats x, std::int64_t n) {
  T lanes[kLanes];
  store(lanes, x);
  std::memcpy(p, lanes, static_cast<std::size_t>(n) * sizeof(T));
}

// Returns b in lanes where a or b is NaN.
TRIREME_INLINE Floats max(Floats a, Floats b) {
#if defined(__AVX512F__)
  return reinterpret_cast<Floats>(
      _mm512_maskz_max_ps(kAllLanes, reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b)));
#elif defined(__AVX2__)
  return reinterpret_cast<Floats>(
      _mm256_max_ps(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b)));
#else
  return reinterpret_cast<Floats>(
      _mm_max_ps(reinterpret_cast<__m128>(a), reinterpret_cast<__m128>(b)));
#endif
}
TRIREME_INLINE Floats min(Floats a, Floats b) {
#if defined(__AVX512F__)
  return reinterpret_cast<Floats>(
      _mm512_maskz_min_ps(kAllLanes, reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b)));
#elif defined(__AVX2__)
  return reinterpret_cast<Floats>(
      _mm256_min_ps(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b)));
#else
  return reinterpret_cast<Floats>(
      _mm_min_ps(reinterpret_cast<__m128>(a), reinterpret_cast<__m128>(b)));
#endif
}

TRIREME_INLINE Floats sqrt(Floats x) {
#if defined(__AVX512F__)
  return reinterpret_cast<Floats>(_mm512_maskz_sqrt_ps(kAllLanes, reinterpret_cast<__m512>(x)));
#elif defined(__AVX2__)
  return reinterpret_cast<Floats>(_mm256_sqrt_ps(reinterpret_cast<__m256>(x)));
#else
  return reinterpret_cast<Floats>(_mm_sqrt_ps(reinterpret_cast<__m128>(x)));
#endif
}

// Returns 1/x to within one or two ulp. A division takes as long as ten other operations, so where
// the processor has a 14-bit estimate, one Newton step refines that.
TRIREME_INLINE Floats reciprocal(Floats x) {
#if defined(__AVX512F__)
  const Floats r =
      reinterpret_cast<Floats>(_mm512_maskz_rcp14_ps(kAllLanes, reinterpret_cast<__m512>(x)));
  return r + r * (1.0F - x * r);
#else
  return 1.0F / x;
#endif
}

template <int distance, int... lane>
TRIREME_INLINE Floats exchanged(Floats x, std::integer_sequence<int, lane...> /*lanes*/) {
  return __builtin_shufflevector(x, x, (lane ^ distance)...);
}

// Returns x with lane i taken from lane i ^ distance.
template <int distance>
TRIREME_INLINE Floats exchanged(Floats x) {
  return exchanged<distance>(x, std::make_integer_sequence<int, kLanes>());
}

// These return the sum and the maximum of the lanes, by halving: lane i is combined with lane i +
// half.
template <int half = kLanes / 2>
TRIREME_INLINE float sum_of_lanes(Floats x) {
  const Floats y = x + exchanged<half>(x);
  if constexpr (half == 1) {
    return y[0];
  } else {
    return sum_of_lanes<half / 2>(y);
  }
}
template <int half = kLanes / 2>
TRIREME_INLINE float max_of_lanes(Floats x) {
  const Floats y = max(x, exchanged<half>(x));
  if constexpr (half == 1) {
    return y[0];
  } else {
    return max_of_lanes<half / 2>(y);
  }
}

}  // namespace trireme::cpu::TRIREME_ISA
