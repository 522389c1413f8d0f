// Clocks. The wall clock is for people only: nothing is ordered by it.
#pragma once

#include <string>

namespace trireme {

// "2025-01-31T12:00:00Z"
std::string utc_now();
// Seconds of the steady clock, for differences.
double steady_seconds();

}  // namespace trireme
