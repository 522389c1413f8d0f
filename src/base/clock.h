// Reads the wall clock and the steady clock. The wall clock is only shown to people; nothing is
// ordered by it.
#pragma once

#include <string>

namespace trireme {

// Returns the time in the form "2025-01-31T12:00:00Z".
std::string utc_now();
// Returns seconds of the steady clock; only differences have a meaning.
double steady_seconds();

}  // namespace trireme
