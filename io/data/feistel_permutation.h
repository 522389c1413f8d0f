// FeistelPermutation is a keyed permutation of [0, n), for any n, in constant memory. It applies
// eight rounds of a Feistel network over a power of two that is at least n, and repeats while the
// result is outside [0, n) ("cycle walking": Black and Rogaway, "Ciphers with Arbitrary Finite
// Domains", CT-RSA 2002). A pure value.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "src/base/check.h"
#include "src/base/philox.h"

namespace trireme {

class FeistelPermutation {
 public:
  FeistelPermutation(std::int64_t n, std::uint64_t key) : n_(static_cast<std::uint64_t>(n)) {
    check(n > 0, "a permutation has elements");
    for (std::uint64_t& round_key : keys_) {
      key += 0xD1342543DE82EF95;
      round_key = mix64(key);
    }
    const int bits = static_cast<int>(std::bit_width(n_ - 1));
    low_bits_ = (bits + 1) / 2;
    low_mask_ = (std::uint64_t{1} << low_bits_) - 1;
    high_mask_ = (std::uint64_t{1} << (bits - low_bits_)) - 1;
  }

  // Returns the position to which element i of [0, n) moves.
  std::int64_t operator()(std::int64_t i) const { return walk<true>(i); }
  // Returns the element that moves to position i.
  std::int64_t inverse(std::int64_t i) const { return walk<false>(i); }

 private:
  static constexpr int kRounds = 8;

  template <bool kForward>
  std::int64_t walk(std::int64_t i) const {
    auto x = static_cast<std::uint64_t>(i);
    check(x < n_, "an element of the permutation");
    do {
      x = kForward ? forward(x) : backward(x);
    } while (x >= n_);
    return static_cast<std::int64_t>(x);
  }

  // Each round XORs one half with a function of the other half, so it can be undone.
  std::uint64_t round(int number, std::uint64_t half) const {
    return (half + keys_[static_cast<std::size_t>(number)]) * 0x9E3779B97F4A7C15 >> 32;
  }
  std::uint64_t forward(std::uint64_t x) const {
    std::uint64_t low = x & low_mask_;
    std::uint64_t high = x >> low_bits_;
    for (int r = 0; r < kRounds; r += 2) {
      high ^= round(r, low) & high_mask_;
      low ^= round(r + 1, high) & low_mask_;
    }
    return high << low_bits_ | low;
  }
  std::uint64_t backward(std::uint64_t x) const {
    std::uint64_t low = x & low_mask_;
    std::uint64_t high = x >> low_bits_;
    for (int r = kRounds - 2; r >= 0; r -= 2) {
      low ^= round(r + 1, high) & low_mask_;
      high ^= round(r, low) & high_mask_;
    }
    return high << low_bits_ | low;
  }

  std::uint64_t n_;
  std::array<std::uint64_t, kRounds> keys_{};
  int low_bits_ = 0;
  std::uint64_t low_mask_ = 0;
  std::uint64_t high_mask_ = 0;
};

}  // namespace trireme
