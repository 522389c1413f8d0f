#include "io/quality/length_counts.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "src/base/check.h"

namespace trireme {
namespace {

constexpr int kPartBits = 5;
constexpr std::size_t kParts = std::size_t{1} << kPartBits;
constexpr std::size_t kFixedNumbers = 4;

// Returns the number of the part: those of [2^i, 2^(i + 1)) follow those of [2^(i - 1), 2^i).
std::size_t part_of(std::int64_t length) {
  const auto value = static_cast<std::uint64_t>(length);
  if (value < 2 * kParts) {
    return value;
  }
  const auto shift = static_cast<int>(std::bit_width(value)) - 1 - kPartBits;
  return static_cast<std::size_t>(shift) * kParts + static_cast<std::size_t>(value >> shift);
}

std::int64_t first_of(std::size_t part) {
  if (part < 2 * kParts) {
    return static_cast<std::int64_t>(part);
  }
  const std::size_t shift = part / kParts - 1;
  return static_cast<std::int64_t>((part % kParts + kParts) << shift);
}

}  // namespace

void LengthCounts::add(std::int64_t length) {
  check(length >= 0, "a length is not negative");
  const std::size_t part = part_of(length);
  parts_.resize(std::max(parts_.size(), part + 1));
  ++parts_[part];
  least_ = count_ == 0 ? length : std::min(least_, length);
  most_ = std::max(most_, length);
  ++count_;
  sum_ += length;
}

LengthCounts& LengthCounts::operator+=(const LengthCounts& other) {
  if (other.count_ == 0) {
    return *this;
  }
  parts_.resize(std::max(parts_.size(), other.parts_.size()));
  for (std::size_t i = 0; i < other.parts_.size(); ++i) {
    parts_[i] += other.parts_[i];
  }
  least_ = count_ == 0 ? other.least_ : std::min(least_, other.least_);
  most_ = std::max(most_, other.most_);
  count_ += other.count_;
  sum_ += other.sum_;
  return *this;
}

std::int64_t LengthCounts::quantile(double q) const {
  const auto rank = static_cast<std::int64_t>(std::ceil(q * static_cast<double>(count_)));
  std::int64_t before = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    before += parts_[i];
    if (before >= std::max<std::int64_t>(rank, 1)) {
      return std::clamp(first_of(i), least_, most_);
    }
  }
  return 0;
}

std::vector<std::int64_t> LengthCounts::by_power_of_two() const {
  std::vector<std::int64_t> powers;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const auto length = static_cast<std::uint64_t>(std::max<std::int64_t>(first_of(i), 1));
    const auto power = static_cast<std::size_t>(std::bit_width(length) - 1);
    powers.resize(std::max(powers.size(), power + 1));
    powers[power] += parts_[i];
  }
  return powers;
}

std::vector<std::int64_t> LengthCounts::numbers() const {
  std::vector<std::int64_t> all = {count_, sum_, least_, most_};
  all.insert(all.end(), parts_.begin(), parts_.end());
  return all;
}

LengthCounts LengthCounts::from_numbers(const std::vector<std::int64_t>& numbers) {
  check(numbers.size() >= kFixedNumbers, "lengths begin with four numbers");
  LengthCounts lengths;
  lengths.count_ = numbers[0];
  lengths.sum_ = numbers[1];
  lengths.least_ = numbers[2];
  lengths.most_ = numbers[3];
  lengths.parts_.assign(numbers.begin() + kFixedNumbers, numbers.end());
  return lengths;
}

}  // namespace trireme
