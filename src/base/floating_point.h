// The floating-point environment of a thread: how its arithmetic rounds, and whether numbers below
// 2^-126 count. A library built with -ffast-math switches it for the thread that loads it, and
// threads that are started later inherit that.
#pragma once

namespace trireme {

// Rounds to nearest, keeps denormal numbers and traps nothing from here on, in the calling thread.
// Returns whether it was otherwise. Reads one register where nothing is to be done.
bool restore_floating_point();

}  // namespace trireme
