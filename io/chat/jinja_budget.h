// JinjaBudget bounds the time and memory that a template takes, so that a hostile one ends. A
// value; one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace trireme {

class JinjaBudget {
 public:
  // Takes a step of work, and the bytes that it makes. Throws DataError once too much was taken.
  void take(std::int64_t bytes = 0) { spend(kStep + bytes); }
  // Takes bytes, or work that costs as much as making them.
  void spend(std::int64_t bytes) {
    left_ -= bytes;
    if (left_ < 0) {
      fail();
    }
  }
  // Takes what a comparison of two texts costs.
  void spend_comparison(std::string_view a, std::string_view b) {
    spend(kCompared + static_cast<std::int64_t>(std::min(a.size(), b.size())) / 8);
  }
  // Takes what a search for `what` in a text costs.
  void spend_search(std::string_view text, std::string_view what) {
    const auto in = static_cast<std::int64_t>(text.size());
    const auto of = static_cast<std::int64_t>(what.size());
    spend(of + in / 64 * (64 + std::min(of, kLongest)));
  }
  // Takes what a copy of so many values costs, which share what they hold.
  void spend_items(std::size_t count) { spend(static_cast<std::int64_t>(count) * 16); }

  std::int64_t spent() const { return kMost - left_; }
  static constexpr std::int64_t kMost = std::int64_t{1} << 27;

 private:
  static constexpr std::int64_t kStep = 128;
  static constexpr std::int64_t kCompared = 2;
  static constexpr std::int64_t kLongest = 256;  // beyond it, a search takes no longer
  [[noreturn]] static void fail();

  std::int64_t left_ = kMost;
};

}  // namespace trireme
