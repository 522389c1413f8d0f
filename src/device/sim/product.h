// Products of matrices on the simulated device. Each sum is taken in fp32 in ascending order of k,
// whatever the shape. product_x86_64.cc or product_portable.cc implements it.
#pragma once

#include <cstdint>

namespace sim {

// A panel holds this many rows of the first matrix: element (i, l) is at (l * kPanelRows + i).
inline constexpr std::int64_t kPanelRows = 32;
// So many columns of the result are computed at once.
inline constexpr std::int64_t kPanelColumns = 4;

// sums[column * kPanelRows + row] = sum over l of a(row, l) b(l, column), for kPanelColumns
// columns. a: a panel of k columns. b: [k, kPanelColumns], with the columns of one l side by side.
void multiply_panels(const float* a, const float* b, std::int64_t k, float* sums);

}  // namespace sim
