// ScoreTerms says how attention's scores follow from the products of queries and keys, for one
// head: scale (q k + slope (key - query)), with ALiBi's slope divided by the scale
// (kernel_arguments.h, AttentionForward). A slope of 0 means no bias.
#pragma once

#include "src/kernels/cpu/isa/attention_tiles.h"
#include "src/kernels/kernel_arguments.h"

namespace trireme::cpu::TRIREME_ISA {

struct ScoreTerms {
  TRIREME_INLINE ScoreTerms(const AttentionForward& p, std::int64_t head)
      : scale(p.scale > 0 ? p.scale : 1.0F / __builtin_sqrtf(static_cast<float>(p.head_dim))),
        slope(p.slopes.empty() ? 0 : as<float>(p.slopes)[head] / scale) {}
  float scale;
  float slope;

  // Adds the bias, before the scale, to a tile of products [rows, columns], `pitch` elements from
  // row to row. first_key: relative to the position of the first row's query.
  TRIREME_INLINE void add_bias(float* products, std::int64_t pitch, std::int64_t rows,
                               std::int64_t columns, std::int64_t first_key) const {
    const Floats lanes = __builtin_convertvector(lane_numbers(), Floats);
    for (std::int64_t r = 0; r < rows; ++r) {
      float* const row = products + r * pitch;
      const float first = static_cast<float>(first_key - r);
      for (std::int64_t i = 0; i < columns; i += kLanes) {
        const Floats distance = lanes + (first + static_cast<float>(i));
        store(row + i, load(row + i) + distance * slope);
      }
    }
  }
};

}  // namespace trireme::cpu::TRIREME_ISA
