// ExactSum adds doubles without rounding, for sums whose bits must not depend on the order of
// additions or on who makes them. It is a long fixed-point accumulator (Kulisch and Miranker, 1986;
// Neal, Fast Exact Summation Using Small and Large Superaccumulators, 2015), rounded once by
// value(). A value without locks.
//
//   words  [0, kLimbs)   limb i counts multiples of 2^(32 i - 1074); carries are delayed
//          the last 3    numbers of NaN, +inf and -inf that were added
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace trireme {

class ExactSum {
 public:
  // Holds the 2098 bits of a double's range and 63 bits of carries.
  static constexpr std::size_t kLimbs = 68;
  static constexpr std::size_t kWords = kLimbs + 3;

  void add(double x);
  // Returns the sum as integers. The words of fewer than 2^30 sums, added word by word, are the
  // words of their total, so ranks can combine their sums by an all-reduce.
  std::span<std::int64_t, kWords> words() {
    carry();
    return words_;
  }
  // Returns the nearest double, ties to even. The result is NaN if NaN or infinities of both signs
  // were added.
  double value() const;

 private:
  void carry();

  std::array<std::int64_t, kWords> words_{};
  std::int64_t added_ = 0;  // additions since the last carry()
};

}  // namespace trireme
