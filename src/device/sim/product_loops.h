// The loops of multiply_panels(), inlined into functions for different instruction sets.
#pragma once

#include <cstddef>

#include "src/device/sim/product.h"

namespace sim {

[[gnu::always_inline]] inline void multiply_panels_loops(const float* a, const float* b,
                                                         std::int64_t k, float* sums) {
  constexpr std::int64_t kHalf = kPanelRows / 2;  // sums of half a panel fit into the registers
  for (std::int64_t first = 0; first < kPanelRows; first += kHalf) {
    float sum[kPanelColumns][kHalf] = {};
    for (std::int64_t l = 0; l < k; ++l) {
      const float* column_of_a = a + l * kPanelRows + first;
      const float* row_of_b = b + l * kPanelColumns;
#pragma GCC unroll 4
      for (std::int64_t j = 0; j < kPanelColumns; ++j) {
        for (std::int64_t i = 0; i < kHalf; ++i) {
          sum[j][i] += column_of_a[i] * row_of_b[j];
        }
      }
    }
    for (std::int64_t j = 0; j < kPanelColumns; ++j) {
      for (std::int64_t i = 0; i < kHalf; ++i) {
        sums[j * kPanelRows + first + i] = sum[j][i];
      }
    }
  }
}

}  // namespace sim
