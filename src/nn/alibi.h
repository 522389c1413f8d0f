// ALiBi biases attention's scores by the distance of a key, in place of positions (Press et al.,
// Train Short, Test Long: Attention with Linear Biases Enables Input Length Extrapolation, 2022).
// Pure functions.
#pragma once

#include <cstdint>

namespace trireme {

// Returns the slope of a head among `heads` heads. With P the largest power of two up to `heads`,
// it is 2^(-8 (head + 1) / P) for the first P heads, and for the rest every second slope among 2 P
// heads, as in the authors' code.
float alibi_slope(std::int64_t head, std::int64_t heads);

}  // namespace trireme
