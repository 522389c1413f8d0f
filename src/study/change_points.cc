#include "src/study/change_points.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "src/base/philox.h"

namespace trireme {
namespace {

constexpr std::size_t kFewest = 3;  // values on each side
constexpr int kOrders = 199;
constexpr double kLevel = 0.01;

struct Division {
  std::size_t at = 0;  // index of the first value on the right
  double distance = -1;
};

// Returns the mean distance within one side, of all pairs of different values.
double mean_within(double sum, double count) {
  return count > 1 ? 2 * sum / (count * (count - 1)) : 0;
}

// Finds the division with the largest energy distance nm / (n + m) * (2 E|X - Y| - E|X - X'| -
// E|Y - Y'|), in O(n^2). Moving a value to the left side changes three sums of distances.
Division best_division(const std::vector<double>& values) {
  const std::size_t n = values.size();
  double left = 0;
  double right = 0;
  double between = 0;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i + 1; j < n; ++j) {
      right += std::abs(values[i] - values[j]);
    }
  }
  Division best;
  for (std::size_t moved = 0; moved + kFewest < n; ++moved) {
    double to_left = 0;
    double to_right = 0;
    for (std::size_t i = 0; i < n; ++i) {
      (i < moved ? to_left : to_right) += std::abs(values[i] - values[moved]);
    }
    left += to_left;
    right -= to_right;
    between += to_right - to_left;
    const std::size_t at = moved + 1;
    if (at >= kFewest) {
      const auto a = static_cast<double>(at);
      const auto b = static_cast<double>(n - at);
      const double distance =
          a * b / (a + b) * (2 * between / (a * b) - mean_within(left, a) - mean_within(right, b));
      if (distance > best.distance) {
        best = {at, distance};
      }
    }
  }
  return best;
}

void shuffle(std::vector<double>& values, std::uint32_t order) {
  for (std::size_t i = values.size() - 1; i > 0; --i) {
    const auto bits = philox({static_cast<std::uint32_t>(i), order, 0, 0}, philox_key(0x68697374));
    std::swap(values[i], values[bits[0] % (i + 1)]);
  }
}

bool is_significant(std::vector<double> values, double distance) {
  int larger = 0;
  for (int order = 0; order < kOrders; ++order) {
    shuffle(values, static_cast<std::uint32_t>(order));
    larger += best_division(values).distance >= distance ? 1 : 0;
    if (larger + 1 > kLevel * (kOrders + 1)) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::vector<std::size_t> change_points(const std::vector<double>& values) {
  const std::size_t begin = values.size() > kMostSearched ? values.size() - kMostSearched : 0;
  std::vector<std::pair<std::size_t, std::size_t>> left = {{begin, values.size()}};
  std::vector<std::size_t> found;
  while (!left.empty()) {
    const auto [from, to] = left.back();
    left.pop_back();
    if (to - from < 2 * kFewest) {
      continue;
    }
    const std::vector<double> part(values.begin() + static_cast<std::ptrdiff_t>(from),
                                   values.begin() + static_cast<std::ptrdiff_t>(to));
    const Division division = best_division(part);
    if (division.distance > 0 && is_significant(part, division.distance)) {
      found.push_back(from + division.at);
      left.emplace_back(from, from + division.at);
      left.emplace_back(from + division.at, to);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace trireme
