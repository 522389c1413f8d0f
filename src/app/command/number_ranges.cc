// The checks of numbers that command_line.h declares.
#include <charconv>
#include <limits>
#include <string>

#include <fmt/core.h>

#include "src/app/command/command_line.h"

namespace trireme {
namespace {

Check number_check(double low, double high, const std::string& allowed) {
  return {"", [low, high, allowed](const std::string& text) {
            double number = 0;
            const char* const end = text.data() + text.size();
            const auto [stop, error] = std::from_chars(text.data(), end, number);
            const bool holds =
                error == std::errc{} && stop == end && number >= low && number <= high;
            if (error == std::errc::result_out_of_range && stop == end) {
              return fmt::format("'{}' is too large or too small: give {}", text, allowed);
            }
            return holds ? std::string() : fmt::format("'{}' is not {}", text, allowed);
          }};
}

}  // namespace

Check within(int low, int high) {
  return number_check(low, high, fmt::format("a number from {} to {}", low, high));
}
Check within(double low, double high) {
  return number_check(low, high, fmt::format("a number from {} to {}", low, high));
}
Check positive_number() {
  return number_check(std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::max(),
                      "a number above 0");
}
Check non_negative_number() {
  return number_check(0, std::numeric_limits<double>::max(), "a number of at least 0");
}

}  // namespace trireme
