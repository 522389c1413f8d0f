// The wall clock, for people only: nothing is ordered by it.
#pragma once

#include <string>

namespace trireme {

// "2025-01-31T12:00:00Z"
std::string utc_now();

}  // namespace trireme
