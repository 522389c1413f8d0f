// Products with packed weights. A product with few rows of x is as fast as the codes come from
// memory: each of them is read once, and multiplied as a byte. The table for AVX-512 needs its
// VNNI extension; without it, and in builds with clang, which has no pragma that sets the target of
// what follows, processors with AVX-512 use the kernels for AVX2.
#include "src/kernels/cpu/isa/loops.h"
#include "src/kernels/cpu/scratch.h"
#include "src/kernels/packed_kernels.h"

#if defined(__AVX512F__) && !defined(__clang__)
#define TRIREME_PACKED_NAME "avx512_vnni"
#pragma GCC target("avx512vnni")
#elif defined(__AVX2__) && !defined(__AVX512F__)
#define TRIREME_PACKED_NAME "avx2"
#elif !defined(__AVX2__)
#define TRIREME_PACKED_NAME "baseline"
#endif

#if defined(TRIREME_PACKED_NAME)
#include "src/kernels/cpu/isa/packed_tiles.h"

namespace trireme::cpu::TRIREME_ISA {
namespace {

constexpr std::int64_t kPart = kPackedRows * 4;  // bytes with four codes of each row

// Four neighbouring codes of a row of x.
TRIREME_INLINE std::int32_t quad(const std::int8_t* x, int number) {
  std::int32_t codes = 0;
  std::memcpy(&codes, x + 4 * number, sizeof codes);
  return codes;
}

#if defined(__AVX512F__)

bool has_instructions() { return __builtin_cpu_supports("avx512vnni") != 0; }

struct ByteUnit {
  TRIREME_INLINE static void add(const Words& w, const std::int8_t* x, int number, Ints& sum) {
    sum = reinterpret_cast<Ints>(
        _mm512_dpbusd_epi32(reinterpret_cast<__m512i>(sum), reinterpret_cast<__m512i>(w),
                            reinterpret_cast<__m512i>(Ints{} + quad(x, number))));
  }
  template <int bits>
  TRIREME_INLINE static void add(const std::uint8_t* codes, const std::int8_t* x, Ints (&sums)[1]) {
    for (int j = 0; j < bits; ++j) {
      Words w;
      std::memcpy(&w, codes + j * kPart, sizeof w);
      if constexpr (bits == 8) {
        add(w, x, j, sums[0]);
      } else {
        add(w & 0x0F0F0F0F, x, j, sums[0]);
        add(w >> 4 & 0x0F0F0F0F, x, j + 4, sums[0]);
      }
    }
  }
};

#elif defined(__AVX2__)

bool has_instructions() { return true; }

// Sums of pairs have 16 bits: 2 * 127 * 127 fit if the codes have a sign, and 16 * 15 * 127 do.
struct ByteUnit {
  TRIREME_INLINE static Ints widened_pairs(__m256i pairs) {
    return reinterpret_cast<Ints>(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
  template <int bits>
  TRIREME_INLINE static void add(const std::uint8_t* codes, const std::int8_t* x, Ints (&sums)[2]) {
    for (int v = 0; v < 2; ++v) {
      __m256i pairs = _mm256_setzero_si256();
      for (int j = 0; j < bits; ++j) {
        __m256i w;
        std::memcpy(&w, codes + j * kPart + v * 32, sizeof w);
        const __m256i low = _mm256_set1_epi32(quad(x, j));
        if constexpr (bits == 8) {
          const __m256i with_sign = _mm256_xor_si256(w, _mm256_set1_epi8(-128));
          sums[v] += widened_pairs(
              _mm256_maddubs_epi16(_mm256_abs_epi8(with_sign), _mm256_sign_epi8(low, with_sign)));
        } else {
          const __m256i halves = _mm256_set1_epi8(15);
          const __m256i high = _mm256_set1_epi32(quad(x, j + 4));
          pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(_mm256_and_si256(w, halves), low));
          pairs = _mm256_add_epi16(
              pairs, _mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi16(w, 4), halves), high));
        }
      }
      if constexpr (bits == 4) {
        sums[v] += widened_pairs(pairs);
      }
    }
  }
};

#else

bool has_instructions() { return true; }

struct ByteUnit {
  template <int bits>
  TRIREME_INLINE static void add(const std::uint8_t* codes, const std::int8_t* x, Ints (&sums)[4]) {
    for (int row = 0; row < kPackedRows; ++row) {
      std::int32_t sum = 0;
      for (int j = 0; j < bits; ++j) {
        for (int i = 0; i < 4; ++i) {
          const int w = codes[j * kPart + row * 4 + i];
          if constexpr (bits == 8) {
            sum += w * x[4 * j + i];
          } else {
            sum += (w & 15) * x[4 * j + i] + (w >> 4) * x[16 + 4 * j + i];
          }
        }
      }
      sums[row / kLanes][row % kLanes] += sum;
    }
  }
};

#endif

// The codes of AVX2 with 8 bits get their sign back.
constexpr int added_to(int bits) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  return bits == 8 ? 0 : 8;
#else
  return bits == 8 ? 128 : 8;
#endif
}

// So many rows of x are rounded at a time that they stay in the cache.
constexpr std::int64_t kRowsAtOnce = 64;

template <class T, class Y>
void multiply_rows(Stream& stream, const PackedMatrix& w, const T* x, std::int64_t rows,
                   const T* bias, Y* y) {
  const std::int64_t most = rows < kRowsAtOnce ? rows : kRowsAtOnce;
  RoundedRows rounded;
  rounded.groups = (w.columns + kPackedGroup - 1) / kPackedGroup;
  const std::int64_t groups = most * rounded.groups;
  rounded.codes = static_cast<std::int8_t*>(scratch(Scratch::a, groups * kPackedGroup));
  rounded.scales = static_cast<float*>(scratch(Scratch::b, groups * 4));
  rounded.starts = static_cast<std::int32_t*>(scratch(Scratch::bias, groups * 4));
  for (std::int64_t first = 0; first < rows; first += most) {
    const std::int64_t count = rows - first < most ? rows - first : most;
    round_rows(stream, x + first * w.columns, count, w.columns, added_to(w.bits), rounded);
    if (w.bits == 8) {
      multiply_tiles<ByteUnit, 8>(stream, w, rounded, count, bias, y + first * w.rows);
    } else {
      multiply_tiles<ByteUnit, 4>(stream, w, rounded, count, bias, y + first * w.rows);
    }
  }
}

void multiply_packed(Stream& stream, const PackedMatrix& w, ConstView x, ConstView bias, View y) {
  by_type(x.dtype, [&](auto t) {
    using T = decltype(t);
    const auto* const from = static_cast<const T*>(x.data);
    const auto* const added = static_cast<const T*>(bias.data);
    const std::int64_t rows = x.count / w.columns;
    if (y.dtype == DType::f32) {
      multiply_rows(stream, w, from, rows, added, static_cast<float*>(y.data));
    } else {
      multiply_rows(stream, w, from, rows, added, static_cast<bf16*>(y.data));
    }
  });
}

constexpr PackedKernels kPacked = {TRIREME_PACKED_NAME, multiply_packed};

}  // namespace

const PackedKernels* packed();
const PackedKernels* packed() { return has_instructions() ? &kPacked : nullptr; }

}  // namespace trireme::cpu::TRIREME_ISA
#else
namespace trireme::cpu::TRIREME_ISA {

const PackedKernels* packed();
const PackedKernels* packed() { return nullptr; }

}  // namespace trireme::cpu::TRIREME_ISA
#endif
