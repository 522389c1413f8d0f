// Multiplies rows of x with the tiles of a packed matrix (src/kernels/packed_kernels.h). A Unit
// adds the products of one tile and group to one 32-bit sum per row of the tile; the sums of groups
// are then scaled and added in f32, in the order of the groups. Included where the instructions of
// the Unit are allowed.
#pragma once

#include "src/kernels/cpu/isa/loops.h"
#include "src/kernels/packed_kernels.h"

namespace trireme::cpu::TRIREME_ISA {
namespace {

typedef std::int8_t Bytes __attribute__((vector_size(kLanes)));

constexpr int kTileVectors = static_cast<int>(kPackedRows) / kLanes;

// Rows of x, rounded to codes of 8 bits.
struct RoundedRows {
  std::int64_t groups = 0;
  std::int8_t* codes = nullptr;    // [rows, groups, kPackedGroup]
  float* scales = nullptr;         // [rows, groups]
  std::int32_t* starts = nullptr;  // [rows, groups]: minus the sum of the codes times what is added
                                   // to the codes of the matrix
};

// Sets sums[m] to the products of a tile with rows first..first + M of x.
template <class Unit, int bits, int M>
TRIREME_INLINE void sum_tile(const std::uint8_t* codes, const bf16* scales, const RoundedRows& x,
                             std::int64_t first, Floats (&sums)[M][kTileVectors]) {
  for (std::int64_t g = 0; g < x.groups; ++g) {
    Ints dots[M][kTileVectors];
#pragma GCC unroll 4
    for (int m = 0; m < M; ++m) {
      const std::int64_t at = (first + m) * x.groups + g;
      for (int v = 0; v < kTileVectors; ++v) {
        dots[m][v] = Ints{} + x.starts[at];
      }
      Unit::template add<bits>(codes, x.codes + at * kPackedGroup, dots[m]);
    }
    for (int v = 0; v < kTileVectors; ++v) {
      const Floats scale = load(scales + v * kLanes);
#pragma GCC unroll 4
      for (int m = 0; m < M; ++m) {
        sums[m][v] += __builtin_convertvector(dots[m][v], Floats) *
                      (scale * x.scales[(first + m) * x.groups + g]);
      }
    }
    codes += kPackedRows * kPackedGroup * bits / 8;
    scales += kPackedRows;
  }
}

template <class Unit, int bits, int M, class T, class Y>
TRIREME_INLINE void multiply_tile(const PackedMatrix& w, std::int64_t tile, const RoundedRows& x,
                                  std::int64_t first, const T* bias, Y* y) {
  const std::int64_t at = tile * x.groups;
  Floats sums[M][kTileVectors] = {};
  sum_tile<Unit, bits, M>(
      static_cast<const std::uint8_t*>(w.codes.data) + at * kPackedRows * kPackedGroup * bits / 8,
      static_cast<const bf16*>(w.scales.data) + at * kPackedRows, x, first, sums);
  for (int v = 0; v < kTileVectors; ++v) {
    const std::int64_t row = tile * kPackedRows + v * kLanes;
    const std::int64_t left = w.rows - row;
    for (int m = 0; m < M && left > 0; ++m) {
      Y* const to = y + (first + m) * w.rows + row;
      const Part part{left < kLanes ? left : kLanes};
      const Floats sum = bias == nullptr ? sums[m][v] : sums[m][v] + load(bias + row, part);
      store(to, sum, part);
    }
  }
}

template <class Unit, int bits, class T, class Y>
void multiply_tiles(Stream& stream, const PackedMatrix& w, const RoundedRows& x, std::int64_t count,
                    const T* bias, Y* y) {
  const std::int64_t tiles = (w.rows + kPackedRows - 1) / kPackedRows;
  each_range(stream, tiles, 1, w.rows * w.columns * count,
             [=](std::int64_t begin, std::int64_t end) {
               for (std::int64_t tile = begin; tile < end; ++tile) {
                 std::int64_t m = 0;
                 for (; m + 4 <= count; m += 4) {
                   multiply_tile<Unit, bits, 4>(w, tile, x, m, bias, y);
                 }
                 for (; m < count; ++m) {
                   multiply_tile<Unit, bits, 1>(w, tile, x, m, bias, y);
                 }
               }
             });
}

TRIREME_INLINE Ints nearest_integers(Floats x) {
#if defined(__AVX512F__)
  return reinterpret_cast<Ints>(_mm512_maskz_cvtps_epi32(kAllLanes, reinterpret_cast<__m512>(x)));
#elif defined(__AVX2__)
  return reinterpret_cast<Ints>(_mm256_cvtps_epi32(reinterpret_cast<__m256>(x)));
#else
  return reinterpret_cast<Ints>(_mm_cvtps_epi32(reinterpret_cast<__m128>(x)));
#endif
}

// Rounds one group; a NaN or an infinity is larger than all numbers as an integer, too.
TRIREME_INLINE void round_group(const Floats (&x)[kPackedGroup / kLanes], int added,
                                const RoundedRows& to, std::int64_t at) {
  constexpr std::uint32_t kInfinity = 0x7F800000;
  Words most{};
  for (const Floats& part : x) {
    const Words magnitude = bits_of(part) & 0x7FFFFFFF;
    most = magnitude > most ? magnitude : most;
  }
  std::uint32_t bits = 0;
  for (int i = 0; i < kLanes; ++i) {
    bits = most[i] > bits ? most[i] : bits;
  }
  float largest = 0;
  std::memcpy(&largest, &bits, sizeof largest);
  const bool is_number = bits < kInfinity;
  const float inverse = is_number && largest >= kLeastMagnitude ? 127 / largest : 0.0F;
  Ints sum{};
  for (int v = 0; v < kPackedGroup / kLanes; ++v) {
    const Ints codes = inverse == 0 ? Ints{} : nearest_integers(x[v] * inverse);
    sum += codes;
    const Bytes bytes = __builtin_convertvector(codes, Bytes);
    std::memcpy(to.codes + at * kPackedGroup + v * kLanes, &bytes, sizeof bytes);
  }
  std::int32_t total = 0;
  for (int i = 0; i < kLanes; ++i) {
    total += sum[i];
  }
  to.starts[at] = -added * total;
  to.scales[at] = is_number ? (inverse == 0 ? 0.0F : largest / 127) : __builtin_nanf("");
}

template <class T>
void round_rows(Stream& stream, const T* x, std::int64_t count, std::int64_t columns, int added,
                const RoundedRows& to) {
  each_range(stream, count, 1, count * columns, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin * to.groups; at < end * to.groups; ++at) {
      const std::int64_t first = at % to.groups * kPackedGroup;
      const T* const from = x + at / to.groups * columns + first;
      Floats group[kPackedGroup / kLanes];
      for (int v = 0; v < kPackedGroup / kLanes; ++v) {
        const std::int64_t left = columns - first - v * kLanes;
        group[v] = left >= kLanes ? load(from + v * kLanes)
                   : left > 0     ? load_part(from + v * kLanes, left)
                                  : splat(0);
      }
      round_group(group, added, to, at);
    }
  });
}

}  // namespace
}  // namespace trireme::cpu::TRIREME_ISA
