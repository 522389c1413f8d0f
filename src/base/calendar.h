// Checks texts that name days and times of the calendar. Pure functions.
#pragma once

#include <string_view>

namespace trireme {

// Returns whether the text is a day of the calendar in the form YYYY-MM-DD.
bool is_day(std::string_view text);
// Returns whether the text is a time of such a day in the form YYYY-MM-DDThh:mm:ssZ.
bool is_utc_time(std::string_view text);

}  // namespace trireme
