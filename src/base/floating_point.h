// The floating-point environment of a thread: how its arithmetic rounds, and whether numbers below
// 2^-126 count. A library built with -ffast-math switches it for the thread that loads it, and
// threads that are started later inherit that.
#pragma once

#include <cstdint>

namespace trireme {

// Rounds to nearest, keeps denormal numbers and traps nothing from here on, in the calling thread.
// Returns whether the thread had other settings. Costs one read of a register if it had not.
bool restore_floating_point();
// Counts the calls of restore_floating_point(), in all threads, that found other settings.
std::int64_t floating_point_restorations();

}  // namespace trireme
