// Sets the weights of smallest magnitude in one matrix to zero (Han et al., Learning both Weights
// and Connections for Efficient Neural Networks, 2015). Of equal magnitudes, those that come first
// in the matrix go first, so that the result depends on the weights alone. Pure functions.
#pragma once

#include <cstdint>

namespace trireme {

// Sets the `zeros` smallest of x [count] to zero; takes no memory in proportion to it.
void prune_smallest(float* x, std::int64_t count, std::int64_t zeros);

// Groups of kPruneGroup weights that are multiplied with consecutive inputs keep the kPruneKept
// largest, the pattern 2:4 that sparse tensor cores multiply (Mishra et al., Accelerating Sparse
// Deep Neural Networks, 2021).
inline constexpr std::int64_t kPruneGroup = 4;
inline constexpr std::int64_t kPruneKept = 2;

// x: [rows,columns]. inputs_are_rows: whether the inputs run down a column, as in GPT-2, instead of
// along a row. Their number is a multiple of kPruneGroup.
void prune_by_pattern(float* x, std::int64_t rows, std::int64_t columns, bool inputs_are_rows);

}  // namespace trireme
