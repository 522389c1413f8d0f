#include "src/base/exact_sum.h"

#include <bit>
#include <cmath>
#include <limits>

namespace trireme {
namespace {

constexpr int kLimbBits = 32;
constexpr std::int64_t kLimbMask = 0xFFFFFFFF;
constexpr int kLowest = -1074;  // exponent of the smallest double
constexpr int kMantissa = 53;
// This many additions of less than 2^32 each keep a limb below 2^62.
constexpr std::int64_t kMostAdded = std::int64_t{1} << 29;

enum Special : std::size_t { kNan = ExactSum::kLimbs, kPositive, kNegative };

using Words = std::array<std::int64_t, ExactSum::kWords>;

// Moves carries up, so that all limbs are in [0, 2^32) except the highest, which has the sign.
void carry_up(Words& words) {
  for (std::size_t i = 0; i + 1 < ExactSum::kLimbs; ++i) {
    words[i + 1] += words[i] >> kLimbBits;
    words[i] &= kLimbMask;
  }
}

// Returns the 64 bits of the limbs from bit `at` on.
std::uint64_t bits_from(const Words& words, int at) {
  const auto limb = static_cast<std::size_t>(at / kLimbBits);
  const int shift = at % kLimbBits;
  const auto part = [&](std::size_t i) {
    return i < ExactSum::kLimbs ? static_cast<std::uint64_t>(words[i]) : 0;
  };
  std::uint64_t bits = part(limb) >> shift | part(limb + 1) << (kLimbBits - shift);
  if (shift > 0) {
    bits |= part(limb + 2) << (2 * kLimbBits - shift);
  }
  return bits;
}

bool any_below(const Words& words, int bit) {
  for (int at = 0; at < bit; at += kLimbBits) {
    const int left = bit - at;
    const std::int64_t mask = left >= kLimbBits ? kLimbMask : (std::int64_t{1} << left) - 1;
    if ((words[static_cast<std::size_t>(at / kLimbBits)] & mask) != 0) {
      return true;
    }
  }
  return false;
}

// Rounds a sum whose limbs are not negative.
double rounded(const Words& words) {
  std::size_t top = ExactSum::kLimbs;
  while (top > 0 && words[top - 1] == 0) {
    --top;
  }
  if (top == 0) {
    return 0;
  }
  const int highest = static_cast<int>(top) * kLimbBits - 1 -
                      (std::countl_zero(static_cast<std::uint64_t>(words[top - 1])) - kLimbBits);
  if (highest < kMantissa) {
    return std::ldexp(static_cast<double>(bits_from(words, 0)), kLowest);
  }
  const int low = highest - (kMantissa - 1);
  std::uint64_t mantissa = bits_from(words, low) & ((std::uint64_t{1} << kMantissa) - 1);
  const bool half = (bits_from(words, low - 1) & 1) != 0;
  mantissa += half && ((mantissa & 1) != 0 || any_below(words, low - 1)) ? 1 : 0;
  return std::ldexp(static_cast<double>(mantissa), low + kLowest);
}

}  // namespace

void ExactSum::add(double x) {
  if (!std::isfinite(x)) {
    words_[std::isnan(x) ? kNan : x > 0 ? kPositive : kNegative] += 1;
    return;
  }
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const auto exponent = static_cast<int>(bits >> (kMantissa - 1) & 0x7FF);
  std::uint64_t mantissa = bits & ((std::uint64_t{1} << (kMantissa - 1)) - 1);
  mantissa |= exponent > 0 ? std::uint64_t{1} << (kMantissa - 1) : 0;
  const int at = exponent > 0 ? exponent - 1 : 0;
  const auto limb = static_cast<std::size_t>(at / kLimbBits);
  const int shift = at % kLimbBits;
  const std::int64_t sign = x < 0 ? -1 : 1;
  const auto part = [&](std::uint64_t value) {
    return sign * static_cast<std::int64_t>(value & static_cast<std::uint64_t>(kLimbMask));
  };
  words_[limb] += part(mantissa << shift);
  words_[limb + 1] += part(mantissa >> (kLimbBits - shift));
  words_[limb + 2] += shift > 0 ? part(mantissa >> (2 * kLimbBits - shift)) : 0;
  if (++added_ >= kMostAdded) {
    carry();
  }
}

void ExactSum::carry() {
  carry_up(words_);
  added_ = 0;
}

double ExactSum::value() const {
  if (words_[kNan] > 0 || (words_[kPositive] > 0 && words_[kNegative] > 0)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (words_[kPositive] > 0 || words_[kNegative] > 0) {
    return words_[kPositive] > 0 ? std::numeric_limits<double>::infinity()
                                 : -std::numeric_limits<double>::infinity();
  }
  Words words = words_;
  carry_up(words);
  const bool negative = words[kLimbs - 1] < 0;
  if (negative) {
    for (std::size_t i = 0; i < kLimbs; ++i) {
      words[i] = -words[i];
    }
    carry_up(words);
  }
  const double size = rounded(words);
  return negative ? -size : size;
}

}  // namespace trireme
