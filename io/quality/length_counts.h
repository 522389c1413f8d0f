// LengthCounts is a distribution of lengths in bounded memory: each power of two is divided into 32
// equal parts, so that quantiles are right to 3 %. Lengths up to 63 are exact. A value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

class LengthCounts {
 public:
  // length: at least 0.
  void add(std::int64_t length);
  LengthCounts& operator+=(const LengthCounts& other);

  std::int64_t count() const { return count_; }
  std::int64_t sum() const { return sum_; }
  // These are 0 if there is no length.
  std::int64_t least() const { return least_; }
  std::int64_t most() const { return most_; }
  // Returns the least length that at least the share `q` of all lengths do not exceed, rounded down
  // to the beginning of its part.
  std::int64_t quantile(double q) const;
  // Returns how many lengths are in [2^i, 2^(i + 1)), for each i up to that of the longest; the
  // first also has those of 0.
  std::vector<std::int64_t> by_power_of_two() const;

  // Convert to and from whole numbers, for sending.
  std::vector<std::int64_t> numbers() const;
  static LengthCounts from_numbers(const std::vector<std::int64_t>& numbers);

 private:
  std::vector<std::int64_t> parts_;
  std::int64_t count_ = 0;
  std::int64_t sum_ = 0;
  std::int64_t least_ = 0;
  std::int64_t most_ = 0;
};

}  // namespace trireme
