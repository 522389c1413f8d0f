// Checks of numbers on the command line. CLI11's own clamp what is too large, wrap what is negative
// around, read 010 as 8 and name bounds with 300 digits. Pure functions.
#pragma once

#include <charconv>
#include <cstdint>
#include <limits>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace trireme {

constexpr std::int64_t kMostThreads = 1024;
// Of tokens, samples, rounds: fits an int, and products of two stay below 2^63.
constexpr std::int64_t kMostCounted = std::numeric_limits<std::int32_t>::max();

// A plain decimal integer within [low, high].
template <class Integer>
CLI::Validator integer_within(Integer low, Integer high) {
  const auto complaint = [low, high](const std::string& text) {
    Integer number{};
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    const bool plain = error == std::errc{} && stop == end && std::to_string(number) == text;
    return plain && number >= low && number <= high
               ? std::string()
               : fmt::format("'{}' is not an integer from {} to {}", text, low, high);
  };
  return {[complaint](std::string& text) { return complaint(text); },
          fmt::format("{}..{}", low, high)};
}

inline CLI::Validator thread_count() { return integer_within<std::int64_t>(1, kMostThreads); }
inline CLI::Validator positive_count() { return integer_within<std::int64_t>(1, kMostCounted); }
inline CLI::Validator any_seed() {
  return integer_within<std::uint64_t>(0, std::numeric_limits<std::uint64_t>::max());
}

}  // namespace trireme
