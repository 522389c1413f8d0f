// Sets the values that parameters start with. They come from a counter-based random number
// generator keyed by seed, name and element of the logical tensor, so that every rank can compute
// any part. Pure functions of these; the host computes normal values.
#pragma once

#include <cstdint>

#include "src/nn/parameter.h"

namespace trireme {

// Overwrites x, f32 in the context's memory, with the elements [first, first + x.count) of those
// that the parameter's place holds.
void set_initial_values(const Parameter& parameter, std::uint64_t seed, std::int64_t first,
                        const View& x, DeviceContext& context);

}  // namespace trireme
