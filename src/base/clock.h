// Reads the wall clock and the steady clock. The wall clock is only shown to people; nothing is
// ordered by it.
#pragma once

#include <cstdint>
#include <string>

namespace trireme {

// Returns the time in the form "2025-01-31T12:00:00Z".
std::string utc_now();
// Returns a time in the same form. seconds: since 1970, of the years 0 to 9999.
std::string utc_text(std::int64_t seconds);
// Returns seconds of the steady clock; only differences have a meaning.
double steady_seconds();

}  // namespace trireme
