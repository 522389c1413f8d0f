// Computes the small matrix products of attention: C[rows, columns] (f32) += A B, where A and B
// consist of 32-bit words. A word is one float (FloatUnit) or two bf16 that are consecutive along
// the summed index (PairUnit, attention_bf16.cc). A is read word by word with any pair of strides,
// so a transposed A costs nothing. B is packed into panels:
//
//   panel p = [steps][kPanel words]: word (s, j) holds column p * kPanel + j at summed index s
//
// Each element of C is one chain of additions in the order of the summed index, wherever blocks are
// cut. Buffers are padded so that tiles are always whole: rows to kTileRows, columns to kLanes.
#pragma once

#include <cstring>

#include "src/kernels/cpu/isa/loops.h"
#include "src/kernels/cpu/isa/vector.h"

namespace trireme::cpu::TRIREME_ISA {

using Word = std::uint32_t;

// The tile has as many sums as fit into the registers together with a row of B and one word of A.
#if defined(__AVX512F__)
inline constexpr int kTileRows = 4;
inline constexpr int kTileVectors = 4;
#else
inline constexpr int kTileRows = 4;
inline constexpr int kTileVectors = 2;
#endif
inline constexpr std::int64_t kPanel = kTileVectors * kLanes;

TRIREME_INLINE constexpr std::int64_t rounded_up(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}
TRIREME_INLINE constexpr std::int64_t least(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}

inline constexpr float kLog2OfE = 1.44269504F;
inline constexpr float kLn2 = 0.693147181F;

TRIREME_INLINE Ints lane_numbers() {
  Ints lane{};
  for (int i = 0; i < kLanes; ++i) {
    lane[i] = i;
  }
  return lane;
}

TRIREME_INLINE Words load_words(const Word* p) {
  Words x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

TRIREME_INLINE void store_words(Word* p, Words x) { std::memcpy(p, &x, sizeof x); }

struct FloatUnit {
  using Element = float;
  static constexpr std::int64_t kElements = 1;  // number of elements in a word
  TRIREME_INLINE static Floats multiply_add(Floats sum, Words a, Words b) {
    return sum + floats_of(a) * floats_of(b);
  }
  TRIREME_INLINE static void put(float* p, Floats x) { store(p, x); }
  // Returns, for each lane, the word of rows 0 .. kElements - 1 of `row`.
  template <class Row>
  TRIREME_INLINE static Words packed(Row row) {
    return bits_of(row(0));
  }
};

// The word of A for row r of C and step s is at[r * row + s * step].
struct Left {
  const Word* at;
  std::int64_t row;
  std::int64_t step;
};

// Computes C[kTileRows, vectors * kLanes] = A B over `steps` words, or += if `add`.
template <class Unit, int vectors>
TRIREME_INLINE void multiply_tile(float* c, std::int64_t ldc, Left a, const Word* b,
                                  std::int64_t steps, bool add) {
  Floats sums[kTileRows][vectors];
#pragma GCC unroll 8
  for (int r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      sums[r][v] = add ? load(c + r * ldc + v * kLanes) : Floats{};
    }
  }
  for (std::int64_t s = 0; s < steps; ++s) {
    Words right[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      right[v] = load_words(b + s * kPanel + v * kLanes);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kTileRows; ++r) {
      const Words left = Words{} + a.at[r * a.row + s * a.step];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        sums[r][v] = Unit::multiply_add(sums[r][v], left, right[v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      store(c + r * ldc + v * kLanes, sums[r][v]);
    }
  }
}

template <class Unit, int vectors>
TRIREME_INLINE void multiply_panel(float* c, std::int64_t ldc, std::int64_t rows, Left a,
                                   const Word* b, std::int64_t steps, bool add) {
  for (std::int64_t r = 0; r < rows; r += kTileRows) {
    multiply_tile<Unit, vectors>(c + r * ldc, ldc, {a.at + r * a.row, a.row, a.step}, b, steps,
                                 add);
  }
}

// Computes C[rows, columns] = A B, or += if `add`. Consecutive panels of B are panel_words apart.
template <class Unit>
void multiply(float* c, std::int64_t ldc, std::int64_t rows, std::int64_t columns, Left a,
              const Word* b, std::int64_t panel_words, std::int64_t steps, bool add) {
  for (std::int64_t column = 0; column < columns; column += kPanel, b += panel_words) {
    float* const at = c + column;
    switch (least(kPanel, columns - column) / kLanes) {
      case 1:
        multiply_panel<Unit, 1>(at, ldc, rows, a, b, steps, add);
        break;
      case 2:
        multiply_panel<Unit, 2>(at, ldc, rows, a, b, steps, add);
        break;
      case 3:
        multiply_panel<Unit, least(3, kTileVectors)>(at, ldc, rows, a, b, steps, add);
        break;
      default:
        multiply_panel<Unit, kTileVectors>(at, ldc, rows, a, b, steps, add);
    }
  }
}

// Packs [rows, depth] of T into words along depth, to[padded_rows][steps], padded with zeros.
template <class Unit, class T>
void pack_rows(Word* to, const T* from, std::int64_t stride, std::int64_t rows,
               std::int64_t padded_rows, std::int64_t depth) {
  const std::int64_t steps = (depth + Unit::kElements - 1) / Unit::kElements;
  std::memset(to + rows * steps, 0, static_cast<std::size_t>((padded_rows - rows) * steps) * 4);
  for (std::int64_t r = 0; r < rows; ++r) {
    auto* const y = reinterpret_cast<typename Unit::Element*>(to + r * steps);
    to[(r + 1) * steps - 1] = 0;
    if constexpr (sizeof(T) == sizeof *y) {
      std::memcpy(y, from + r * stride, static_cast<std::size_t>(depth) * sizeof(T));
      continue;
    }
    each_vector(depth, [&, x = from + r * stride](std::int64_t i, auto part) {
      store(y + i, load(x + i, part), part);
    });
  }
}

// Packs B = the transpose of [rows, depth], to be summed over depth, into panels of rows, with
// zeros up to padded_rows, a multiple of kPanel. spare: [kPanel, steps].
template <class Unit, class T>
void pack_transposed(Word* to, const T* from, std::int64_t stride, std::int64_t rows,
                     std::int64_t padded_rows, std::int64_t depth, Word* spare) {
  const std::int64_t steps = (depth + Unit::kElements - 1) / Unit::kElements;
  for (std::int64_t r0 = 0; r0 < padded_rows; r0 += kPanel, to += steps * kPanel) {
    const std::int64_t real = r0 < rows ? least(kPanel, rows - r0) : 0;
    pack_rows<Unit>(spare, from + r0 * stride, stride, real, kPanel, depth);
    for (std::int64_t s0 = 0; s0 < steps; s0 += 8) {
      for (std::int64_t r = 0; r < kPanel; ++r) {
        for (std::int64_t s = s0; s < least(s0 + 8, steps); ++s) {
          to[s * kPanel + r] = spare[r * steps + s];
        }
      }
    }
  }
}

// Packs B = [rows, depth] itself, to be summed over rows, into panels along depth. Pads depth to
// whole vectors, and rows with zeros up to padded_rows.
template <class Unit, class T>
void pack_plain(Word* to, const T* from, std::int64_t stride, std::int64_t rows,
                std::int64_t padded_rows, std::int64_t depth) {
  const std::int64_t steps = padded_rows / Unit::kElements;
  for (std::int64_t s = 0; s < steps; ++s) {
    const std::int64_t r = s * Unit::kElements;
    const T* const x = from + r * stride;
    const auto row = [&](std::int64_t step, std::int64_t i, auto part) {
      return r + step < rows ? load(x + step * stride + i, part) : Floats{};
    };
    each_vector(depth, [&](std::int64_t i, auto part) {
      Word* const y = to + (i / kPanel * steps + s) * kPanel + i % kPanel;
      store_words(y, Unit::packed([&](std::int64_t step) { return row(step, i, part); }));
    });
  }
}

}  // namespace trireme::cpu::TRIREME_ISA
