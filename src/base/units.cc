#include "src/base/units.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include "src/base/error.h"

namespace trireme {

std::int64_t parse_bytes(std::string_view text) {
  const auto fail = [&] {
    throw ConfigError(fmt::format(
        "'{}' is not a size: write a number and K, M, G or T, as in 64K or 4GiB", text));
  };
  double number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  while (!rest.empty() && rest.front() == ' ') {
    rest.remove_prefix(1);
  }
  double scale = 1;
  if (!rest.empty()) {
    constexpr std::string_view kSuffixes = "KMGT";
    const auto power =
        kSuffixes.find(static_cast<char>(std::toupper(static_cast<unsigned char>(rest.front()))));
    if (power != std::string_view::npos) {
      scale = std::ldexp(1.0, static_cast<int>(10 * (power + 1)));
      rest.remove_prefix(1);
      if (!rest.empty() && rest.front() == 'i') {
        rest.remove_prefix(1);
      }
    }
    if (!rest.empty() && (rest.front() == 'B' || rest.front() == 'b')) {
      rest.remove_prefix(1);
    }
  }
  const double bytes = number * scale;
  if (code != std::errc() || !rest.empty() || !(bytes >= 0) || bytes >= 0x1p62) {
    fail();
  }
  return static_cast<std::int64_t>(bytes);
}

std::string format_bytes(std::int64_t bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (std::abs(value) >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.4g} {}", value, kUnits[unit]);
}

std::string format_seconds(double seconds) {
  if (!(seconds < 1e9)) {
    return "?";
  }
  const std::int64_t whole = std::llround(seconds);
  if (seconds > 0 && seconds < 0.0995) {
    return fmt::format("{:.2g}ms", 1e3 * seconds);
  }
  if (seconds < 10) {
    return fmt::format("{:.1f}s", seconds);
  }
  if (whole < 60) {
    return fmt::format("{}s", whole);
  }
  if (whole < 3600) {
    return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  }
  const std::int64_t minutes = std::llround(seconds / 60);
  return fmt::format("{}h{:02}m", minutes / 60, minutes % 60);
}

namespace {

// Keeps trailing zeros, so that the numbers of one column have equally many digits: 19.00, 4.450.
std::string significant(double number, std::size_t digits) {
  std::string text = fmt::format("{:#.{}g}", number, digits);
  // A number without decimals ends with a point, or with ".0" in older versions of fmt.
  const std::size_t point = text.find('.');
  const std::size_t before_point = point - (text.front() == '-' ? 1 : 0);
  if (point != std::string::npos && before_point >= digits) {
    text.resize(point);
  }
  return text;
}

}  // namespace

std::string format_count(double count) {
  constexpr std::array kUnits = {"", "k", "M", "G", "T", "P"};
  std::size_t unit = 0;
  while (std::abs(count) >= (unit == 0 ? 1000 : 999.95) && unit + 1 < kUnits.size()) {
    count /= 1000;
    ++unit;
  }
  const bool is_exact = unit == 0 && count == std::floor(count);
  return is_exact ? fmt::format("{:.0f}", count) : significant(count, 4) + kUnits[unit];
}

std::string format_rate(double rate, std::string_view unit) {
  constexpr std::array kPrefixes = {"", "k", "M", "G", "T", "P"};
  std::size_t prefix = 0;
  while (std::abs(rate) >= 999.5 && prefix + 1 < kPrefixes.size()) {
    rate /= 1000;
    ++prefix;
  }
  return fmt::format("{} {}{}", significant(rate, 3), kPrefixes[prefix], unit);
}

std::string counted(std::int64_t count, std::string_view noun) {
  if (count == 1) {
    return fmt::format("1 {}", noun);
  }
  const bool y = noun.size() > 1 && noun.ends_with('y') &&
                 std::string_view("aeiou").find(noun[noun.size() - 2]) == std::string_view::npos;
  const bool hisses =
      noun.ends_with("ch") || noun.ends_with("sh") || noun.ends_with('s') || noun.ends_with('x');
  return y ? fmt::format("{} {}ies", count, noun.substr(0, noun.size() - 1))
           : fmt::format("{} {}{}", count, noun, hisses ? "es" : "s");
}

}  // namespace trireme
