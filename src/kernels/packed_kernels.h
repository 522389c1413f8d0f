// PackedKernels are the kernels of the CPU for weights of 8 or 4 bits, with which a model
// generates text and is evaluated, but not trained. They are apart from the kernel table because
// other devices do not have them.
//
// A packed matrix W [N,K] is cut into tiles of kPackedRows rows, and its rows into groups of
// kPackedGroup elements; zeros fill the last tile and the last group. An element is code * scale of
// its row and group (groups as in ggml's Q8_0 and Q4_0). The codes of a tile and group lie
// together, in the order in which instructions for products of bytes take them: those of four
// neighbouring columns are the four bytes of a row's lane.
//
//   8 bits   8 x | row 0: 4 codes | row 1: 4 codes | ... row 15 |     from -127 to 127, plus 128
//   4 bits   4 x the same, with the codes of columns 4 j + i in the lower halves of the bytes of
//            part j, and those of columns 16 + 4 j + i in the upper    from -8 to 7, plus 8
//   scales   bf16 [tiles, groups, kPackedRows], apart
//
// Rows of x are rounded in the same way to codes of 8 bits with an f32 scale per group (as in
// Dettmers et al., LLM.int8(), 2022, which does it per row), so that the products within a group
// are sums of integers and therefore exact.
#pragma once

#include <string_view>

#include "src/device/stream.h"
#include "src/kernels/kernels.h"

namespace trireme {

inline constexpr std::int64_t kPackedGroup = 32;
inline constexpr std::int64_t kPackedRows = 16;
inline constexpr std::int64_t packed_groups(std::int64_t k) {
  return (k + kPackedGroup - 1) / kPackedGroup;
}
inline constexpr std::int64_t packed_tiles(std::int64_t n) {
  return (n + kPackedRows - 1) / kPackedRows;
}
// Returns the bytes of the codes of one tile and group.
inline constexpr std::int64_t packed_group_bytes(int bits) {
  return kPackedRows * kPackedGroup * bits / 8;
}

// PackedMatrix refers to a packed matrix in the host's memory.
struct PackedMatrix {
  int bits = 8;              // or 4
  std::int64_t rows = 0;     // N
  std::int64_t columns = 0;  // K
  ConstView codes;           // u8 [code_bytes()]
  ConstView scales;          // bf16 [scale_count()]
  std::int64_t tile_groups() const { return packed_tiles(rows) * packed_groups(columns); }
  std::int64_t code_bytes() const { return tile_groups() * packed_group_bytes(bits); }
  std::int64_t scale_count() const { return tile_groups() * kPackedRows; }
};

struct PackedKernels {
  std::string_view name;  // "reference", "baseline", "avx2" or "avx512_vnni"
  // y [M,N] = x [M,K] W^T + bias; x, bias T, y T or f32; bias may be empty. A group of x is rounded
  // to codes round(x * (127 / m)) and the scale m / 127, where m is its largest magnitude; if m is
  // infinite or NaN, y is NaN. A row of y depends on its row of x alone, not on M.
  void (*multiply)(Stream&, const PackedMatrix& w, ConstView x, ConstView bias, View y);
};

// A group of x whose largest magnitude is smaller becomes zeros.
inline constexpr float kLeastMagnitude = 1e-30F;

// Returns the fastest that run on this processor with the instructions of the table, which is one
// of a CPU; throws InternalError for other tables.
const PackedKernels& packed_kernels(const Kernels& table);

// Packs f32 rows [N,K] whose elements lie `row_stride` and `column_stride` apart. codes, scales: as
// in PackedMatrix, to be written. With 8 bits, the scale of a group is its largest magnitude by
// 127; with 4 bits, of several scales the one with the smallest sum of squared errors.
struct PackedStorage {
  View codes;
  View scales;
};
void pack_matrix(const float* from, std::int64_t row_stride, std::int64_t column_stride,
                 const PackedMatrix& shape, const PackedStorage& to, int threads);

// Returns one element of W.
float packed_element(const PackedMatrix& w, std::int64_t row, std::int64_t column);

}  // namespace trireme
