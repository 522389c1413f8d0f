// Keeps the ranges that a thread has opened for a profiler and not yet closed.
#pragma once

#include <string>
#include <vector>

namespace sim {

// Returns those of the calling thread, the outermost first.
const std::vector<std::string>& open_ranges();

}  // namespace sim
