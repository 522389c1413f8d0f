#include "src/kernels/packed_kernels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "src/base/check.h"

namespace trireme {

// cpu/isa/packed.cc defines these, once per instruction set; null if the processor lacks what they
// need.
namespace cpu::baseline {
const PackedKernels* packed();
}
namespace cpu::avx2 {
const PackedKernels* packed();
}
namespace cpu::avx512 {
const PackedKernels* packed();
}
namespace reference {
extern const PackedKernels kPacked;
}

const PackedKernels& packed_kernels(const Kernels& table) {
  if (table.name == "avx512" && cpu::avx512::packed() != nullptr) {
    return *cpu::avx512::packed();
  }
  if (table.name == "avx512" || table.name == "avx2") {
    return *cpu::avx2::packed();
  }
  if (table.name == "baseline") {
    return *cpu::baseline::packed();
  }
  check(table.name == "reference", "weights are packed for CPUs alone");
  return reference::kPacked;
}

namespace {

using Group = std::array<float, kPackedGroup>;

// Returns x rounded to the nearest integer, ties to even; |x| < 2^22.
float nearest(float x) { return (x + 0x1.8p23F) - 0x1.8p23F; }

float code_of(float x, float inverse, float least, float most) {
  return std::clamp(nearest(std::clamp(x * inverse, least, most)), least, most);
}

float inverse_of(bf16 scale) {
  const float x = to_float(scale);
  return std::abs(x) < kLeastMagnitude ? 0.0F : 1 / x;
}

// Returns the smallest bf16 that is not less than x, which is finite and not negative.
bf16 rounded_up(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return {static_cast<std::uint16_t>((bits + 0xFFFF) >> 16)};
}

// Returns the element of the largest magnitude, with its sign.
float extreme_of(const Group& group) {
  float extreme = 0;
  for (const float x : group) {
    extreme = std::abs(x) > std::abs(extreme) ? x : extreme;
  }
  return extreme;
}

float squared_error(const Group& group, bf16 scale) {
  const float inverse = inverse_of(scale);
  float sum = 0;
  for (const float x : group) {
    const float error = x - code_of(x, inverse, -8, 7) * to_float(scale);
    sum += error * error;
  }
  return sum;
}

// Returns the best of the scales that give the extreme element one of several codes. Beyond -8, it
// is rounded to -8, and the others become more exact.
bf16 scale_of_4_bits(const Group& group) {
  const float extreme = extreme_of(group);
  bf16 best = to_bf16(extreme / -8);
  float least = std::numeric_limits<float>::infinity();
  for (const float code : {-8.0F, -7.5F, -8.5F, -9.0F, -9.5F, 7.0F}) {
    const bf16 scale = to_bf16(extreme / code);
    const float error = squared_error(group, scale);
    if (error < least) {
      least = error;
      best = scale;
    }
  }
  return best;
}

// Returns where the code of a row and column lies in the codes of its tile and group.
std::size_t place_of(std::int64_t row, std::int64_t column, int bits) {
  const std::int64_t part = column / 4 % (bits == 8 ? 8 : 4);
  return static_cast<std::size_t>((part * kPackedRows + row) * 4 + column % 4);
}

// Packs the group of one row within a tile.
bf16 pack_group(const Group& group, std::int64_t row, int bits, std::uint8_t* codes) {
  const bf16 scale =
      bits == 8 ? rounded_up(std::abs(extreme_of(group)) / 127) : scale_of_4_bits(group);
  const float inverse = inverse_of(scale);
  for (std::int64_t i = 0; i < kPackedGroup; ++i) {
    const float x = group[static_cast<std::size_t>(i)];
    std::uint8_t& to = codes[place_of(row, i, bits)];
    if (bits == 8) {
      to = static_cast<std::uint8_t>(code_of(x, inverse, -127, 127) + 128);
    } else {
      const auto code = static_cast<unsigned>(code_of(x, inverse, -8, 7) + 8);
      to = static_cast<std::uint8_t>(i < kPackedGroup / 2 ? code : to | code << 4);
    }
  }
  return scale;
}

}  // namespace

void pack_matrix(const float* from, std::int64_t row_stride, std::int64_t column_stride,
                 const PackedMatrix& shape, const PackedStorage& to, int threads) {
  const std::int64_t groups = packed_groups(shape.columns);
  auto* const codes = as<std::uint8_t>(to.codes);
  auto* const scales = as<bf16>(to.scales);
#pragma omp parallel for schedule(static) num_threads(threads)
  for (std::int64_t at = 0; at < shape.tile_groups(); ++at) {
    for (std::int64_t row = 0; row < kPackedRows; ++row) {
      const std::int64_t whole_row = at / groups * kPackedRows + row;
      const std::int64_t first = at % groups * kPackedGroup;
      const std::int64_t count =
          whole_row < shape.rows ? std::min(kPackedGroup, shape.columns - first) : 0;
      Group group{};
      for (std::int64_t i = 0; i < count; ++i) {
        group[static_cast<std::size_t>(i)] =
            from[whole_row * row_stride + (first + i) * column_stride];
      }
      scales[at * kPackedRows + row] =
          pack_group(group, row, shape.bits, codes + at * packed_group_bytes(shape.bits));
    }
  }
}

float packed_element(const PackedMatrix& w, std::int64_t row, std::int64_t column) {
  const std::int64_t at = row / kPackedRows * packed_groups(w.columns) + column / kPackedGroup;
  const std::int64_t within = column % kPackedGroup;
  const int byte = as<std::uint8_t>(
      w.codes)[at * packed_group_bytes(w.bits) +
               static_cast<std::int64_t>(place_of(row % kPackedRows, within, w.bits))];
  const float scale = to_float(as<bf16>(w.scales)[at * kPackedRows + row % kPackedRows]);
  if (w.bits == 8) {
    return scale * static_cast<float>(byte - 128);
  }
  return scale * static_cast<float>((within < kPackedGroup / 2 ? byte & 15 : byte >> 4) - 8);
}

}  // namespace trireme
