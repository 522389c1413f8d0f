// Checks numbers on the command line. CLI11's own checks clamp large values, wrap negative ones
// around, read 010 as 8 and print bounds with 300 digits. Pure functions.
#pragma once

#include <cstdint>
#include <limits>

#include "src/app/command/command_line.h"

namespace trireme {

inline constexpr std::int64_t kMostThreads = 1024;
// Limits numbers of tokens, samples and rounds. It fits an int, and the product of two is below
// 2^63.
inline constexpr std::int64_t kMostCounted = std::numeric_limits<std::int32_t>::max();

// Accepts a plain decimal integer within [low, high].
Check integer_within(std::int64_t low, std::int64_t high);

Check thread_count();
Check positive_count();
Check any_seed();

}  // namespace trireme
