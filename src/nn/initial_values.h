// The values that parameters start with: from a counter-based RNG keyed by (seed, name, element of
// the logical tensor), so that every rank can make any part of them. Pure function.
#pragma once

#include <cstdint>

#include "src/nn/parameter.h"

namespace trireme {

// x: f32, the held elements [first, first + x.count) of the parameter; to be overwritten.
void fill_initial_values(const Parameter& parameter, std::uint64_t seed, std::int64_t first,
                         const View& x);

}  // namespace trireme
