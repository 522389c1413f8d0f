// The values that parameters start with. They come from a counter-based random number generator
// keyed by seed, name and element of the logical tensor, so that every rank can compute any part.
#pragma once

#include <cstdint>

#include "src/nn/parameter.h"

namespace trireme {

// Overwrites x, f32: the held elements [first, first + x.count) of the parameter. The host computes
// them.
void set_initial_values(const Parameter& parameter, std::uint64_t seed, std::int64_t first,
                        const View& x, DeviceContext& context);

}  // namespace trireme
