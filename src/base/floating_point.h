// Restores the floating-point environment of a thread: its rounding mode, and whether it flushes
// numbers below 2^-126 to zero. A library built with -ffast-math changes it for the thread that
// loads the library, and threads started later inherit that.
#pragma once

#include <cstdint>

namespace trireme {

// Sets the calling thread to round to nearest, keep denormal numbers and trap nothing. Returns
// whether the thread had other settings. If not, costs one read of a register.
bool restore_floating_point();
// Returns how many calls of restore_floating_point(), in all threads, found other settings.
std::int64_t floating_point_restorations();

}  // namespace trireme
