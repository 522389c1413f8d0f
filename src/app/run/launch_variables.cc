#include "src/app/run/launch_variables.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "src/base/error.h"
#include "src/base/printable.h"

namespace trireme {

double seen_mtbf_hours() {
  const char* text = std::getenv("TRIREME_MTBF_HOURS");
  if (text == nullptr || *text == '\0') {
    return 0;
  }
  char* end = nullptr;
  const double hours = std::strtod(text, &end);
  if (*end != '\0' || !(hours > 0) || !std::isfinite(hours)) {
    throw ConfigError(fmt::format("TRIREME_MTBF_HOURS is '{}': expected a number of hours above 0",
                                  printable(text)));
  }
  return hours;
}

void check_attempt_number() {
  const char* const text = std::getenv("TRIREME_GENERATION");
  if (text == nullptr || *text == '\0') {
    return;
  }
  int number = 0;
  const char* const end = text + std::strlen(text);
  const auto parsed = std::from_chars(text, end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end || number < 1) {
    throw ConfigError(fmt::format(
        "TRIREME_GENERATION is '{}': expected the number of an attempt, an integer from 1 to {}; "
        "unset it unless a launcher sets it",
        printable(text), std::numeric_limits<int>::max()));
  }
}

}  // namespace trireme
