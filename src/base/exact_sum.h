// ExactSum: a sum of doubles without rounding, for sums whose bits must not depend on who adds what
// in which order (a long fixed-point accumulator: Kulisch and Miranker, 1986; Neal, Fast Exact
// Summation Using Small and Large Superaccumulators, 2015). The sum is rounded once, by value(). A
// value; no locks.
//
//   words  [0, kLimbs)   limb i stands for multiples of 2^(32 i - 1074); carries are put off
//          and three     how many NaN, +inf and -inf were added
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace trireme {

class ExactSum {
 public:
  // 2098 bits of a double's range and 63 of carries.
  static constexpr std::size_t kLimbs = 68;
  static constexpr std::size_t kWords = kLimbs + 3;

  void add(double x);
  // The sum as integers. Added up word by word, those of several sums (fewer than 2^30) are the
  // words of their sum: other ranks join in by an all-reduce of them.
  std::span<std::int64_t, kWords> words() {
    carry();
    return words_;
  }
  // To the nearest double, ties to even. NaN if one was added, or infinities of both signs.
  double value() const;

 private:
  void carry();

  std::array<std::int64_t, kWords> words_{};
  std::int64_t added_ = 0;  // since the last carry()
};

}  // namespace trireme
