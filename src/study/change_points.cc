#include "src/study/change_points.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "src/base/philox.h"

namespace trireme {
namespace {

constexpr std::size_t kFewest = 3;  // values on each side
constexpr int kOrders = 399;
// Of 400 orders, with the one that was measured: 3 for a single change, and 1 for two at once, so
// that both searches together raise a false alarm in 1 % of the steady series.
constexpr int kMostOrdersOfOne = 3;
constexpr int kMostOrdersOfTwo = 1;

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

// A part between two changes, of which the values before and after it form the other side.
struct Window {
  std::size_t begin = 0;
  std::size_t end = 0;
  double distance = -1;
};

// Finds the window with the largest energy distance from what surrounds it, in O(n^2): sums of all
// distances in rectangles follow from those that begin at (0, 0).
Window best_window(const std::vector<double>& values) {
  const std::size_t n = values.size();
  const std::size_t width = n + 1;
  std::vector<double> sums(width * width);
  for (std::size_t i = 0; i < n; ++i) {
    double row = 0;
    for (std::size_t j = 0; j < n; ++j) {
      row += std::abs(values[i] - values[j]);
      sums[(i + 1) * width + j + 1] = sums[i * width + j + 1] + row;
    }
  }
  const double total = sums.back();
  Window best;
  for (std::size_t begin = kFewest; begin + 2 * kFewest <= n; ++begin) {
    for (std::size_t end = begin + kFewest; end + kFewest <= n; ++end) {
      const double inside =
          sums[end * width + end] - 2 * sums[begin * width + end] + sums[begin * width + begin];
      const double rows = sums[end * width + n] - sums[begin * width + n];
      const double outside = total - 2 * rows + inside;
      const auto a = static_cast<double>(end - begin);
      const auto b = static_cast<double>(n - (end - begin));
      const double distance = a * b / (a + b) *
                              (2 * (rows - inside) / (a * b) - mean_within(inside / 2, a) -
                               mean_within(outside / 2, b));
      if (distance > best.distance) {
        best = {begin, end, distance};
      }
    }
  }
  return best;
}

// Returns whether a distance could hardly come about by chance: values that are shuffled reach it
// at most `most` times, their own order included.
template <class Search>
bool is_significant(std::vector<double> values, double distance, int most, Search search) {
  int larger = 1;
  for (int order = 0; order < kOrders; ++order) {
    shuffle(values, static_cast<std::uint32_t>(order));
    larger += search(values).distance >= distance ? 1 : 0;
    if (larger > most) {
      return false;
    }
  }
  return distance > 0;
}

// Returns where the values change: at one place, at the two ends of a window, or nowhere.
std::vector<std::size_t> changes_in(const std::vector<double>& values) {
  const Division division = best_division(values);
  if (is_significant(values, division.distance, kMostOrdersOfOne, best_division)) {
    return {division.at};
  }
  if (values.size() < 3 * kFewest) {
    return {};
  }
  const Window window = best_window(values);
  if (is_significant(values, window.distance, kMostOrdersOfTwo, best_window)) {
    return {window.begin, window.end};
  }
  return {};
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
    std::size_t last = from;
    for (const std::size_t at : changes_in(part)) {
      found.push_back(from + at);
      left.emplace_back(last, from + at);
      last = from + at;
    }
    if (last > from) {
      left.emplace_back(last, to);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace trireme
