#include "src/app/command/number_check.h"

#include <charconv>

#include <fmt/core.h>

namespace trireme {
namespace {

template <class Integer>
Check plain_integer(Integer low, Integer high) {
  const auto complaint = [low, high](const std::string& text) {
    Integer number{};
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    const bool plain = error == std::errc{} && stop == end && std::to_string(number) == text;
    return plain && number >= low && number <= high
               ? std::string()
               : fmt::format("'{}' is not an integer from {} to {}", text, low, high);
  };
  return {"", complaint};
}

}  // namespace

Check integer_within(std::int64_t low, std::int64_t high) { return plain_integer(low, high); }

Check thread_count() { return integer_within(1, kMostThreads); }
Check positive_count() { return integer_within(1, kMostCounted); }
Check any_seed() {
  return plain_integer<std::uint64_t>(0, std::numeric_limits<std::uint64_t>::max());
}

}  // namespace trireme
