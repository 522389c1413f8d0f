#include "src/study/rank_test.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

#include "src/base/check.h"

namespace trireme {
namespace {

// The ranks of all values, doubled so that the mean ranks of equal values are whole numbers.
struct Ranks {
  std::vector<std::size_t> doubled;  // sorted by value
  std::size_t first_sum = 0;         // doubled rank sum of the first set
  double ties = 0;                   // sum of t^3 - t over groups of t equal values
};

Ranks rank(const std::vector<double>& first, const std::vector<double>& second) {
  struct Item {
    double value;
    bool in_first;
  };
  std::vector<Item> items;
  for (const double value : first) {
    items.push_back({value, true});
  }
  for (const double value : second) {
    items.push_back({value, false});
  }
  std::sort(items.begin(), items.end(),
            [](const Item& a, const Item& b) { return a.value < b.value; });
  Ranks ranks;
  for (std::size_t begin = 0; begin < items.size();) {
    std::size_t end = begin;
    while (end < items.size() && items[end].value == items[begin].value) {
      ++end;
    }
    const auto equal = static_cast<double>(end - begin);
    ranks.ties += equal * equal * equal - equal;
    for (std::size_t i = begin; i < end; ++i) {
      ranks.doubled.push_back(begin + end + 1);  // twice the mean of begin + 1 ... end
      ranks.first_sum += items[i].in_first ? begin + end + 1 : 0;
    }
    begin = end;
  }
  return ranks;
}

// Returns the probability of each doubled rank sum of `count` items drawn from all of them.
std::vector<double> rank_sum_distribution(const std::vector<std::size_t>& doubled,
                                          std::size_t count) {
  const std::size_t most = std::accumulate(doubled.begin(), doubled.end(), std::size_t{0});
  std::vector<std::vector<double>> ways(count + 1, std::vector<double>(most + 1, 0.0));
  ways[0][0] = 1;
  std::size_t seen = 0;
  for (const std::size_t rank : doubled) {
    ++seen;
    for (std::size_t k = std::min(seen, count); k >= 1; --k) {
      for (std::size_t sum = most; sum >= rank; --sum) {
        ways[k][sum] += ways[k - 1][sum - rank];
      }
    }
  }
  const double all = std::accumulate(ways[count].begin(), ways[count].end(), 0.0);
  for (double& way : ways[count]) {
    way /= all;
  }
  return ways[count];
}

double exact_p(const Ranks& ranks, std::size_t first_count) {
  const std::vector<double> chance = rank_sum_distribution(ranks.doubled, first_count);
  double at_most = 0;
  double at_least = 0;
  for (std::size_t sum = 0; sum < chance.size(); ++sum) {
    at_most += sum <= ranks.first_sum ? chance[sum] : 0;
    at_least += sum >= ranks.first_sum ? chance[sum] : 0;
  }
  return std::min(1.0, 2 * std::min(at_most, at_least));
}

double normal_p(double u, double n1, double n2, double ties) {
  const double n = n1 + n2;
  const double variance = n1 * n2 / 12 * (n + 1 - ties / (n * (n - 1)));
  const double distance = std::abs(u - n1 * n2 / 2) - 0.5;
  if (variance <= 0) {
    return 1;
  }
  return std::min(1.0, std::erfc(distance / std::sqrt(variance) / std::sqrt(2.0)));
}

// Returns how many values of the interval's ends are cut off among the sorted differences: the
// largest C with P(U < C) <= alpha / 2.
std::size_t cut_off(std::size_t n1, std::size_t n2, double alpha) {
  if (n1 + n2 <= kMostExact) {
    std::vector<std::size_t> doubled(n1 + n2);
    for (std::size_t i = 0; i < doubled.size(); ++i) {
      doubled[i] = 2 * (i + 1);
    }
    const std::vector<double> chance = rank_sum_distribution(doubled, n1);
    double below = 0;
    for (std::size_t c = 0;; ++c) {
      below += chance[n1 * (n1 + 1) + 2 * c];  // the smallest doubled sum belongs to U = 0
      if (below > alpha / 2) {
        return c;
      }
    }
  }
  // The quantile of the normal distribution by bisection: alpha / 2 = erfc(z / sqrt 2) / 2.
  double low = 0;
  double high = 40;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(middle / std::sqrt(2.0)) > alpha ? low : high) = middle;
  }
  const auto pairs = static_cast<double>(n1) * static_cast<double>(n2);
  const double deviation = std::sqrt(pairs * static_cast<double>(n1 + n2 + 1) / 12);
  return static_cast<std::size_t>(std::max(0.0, std::floor(pairs / 2 - low * deviation)));
}

// Returns how many differences y - x are at most `limit`. Both lists are sorted.
std::size_t differences_up_to(const std::vector<double>& x, const std::vector<double>& y,
                              double limit) {
  std::size_t count = 0;
  std::size_t end = 0;
  for (const double each : x) {
    while (end < y.size() && y[end] - each <= limit) {
      ++end;
    }
    count += end;
  }
  return count;
}

// Returns the k-th smallest difference y - x (k from 1) by bisection, in O(n) per step.
double kth_difference(const std::vector<double>& x, const std::vector<double>& y, std::size_t k) {
  double low = y.front() - x.back();
  double high = y.back() - x.front();
  if (differences_up_to(x, y, low) >= k) {
    return low;
  }
  while (true) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) {
      return high;
    }
    (differences_up_to(x, y, middle) >= k ? high : low) = middle;
  }
}

double neighbour_correlation(const std::vector<double>& values) {
  const double mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  double product = 0;
  double square = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    square += (values[i] - mean) * (values[i] - mean);
    product += i > 0 ? (values[i] - mean) * (values[i - 1] - mean) : 0;
  }
  return square > 0 ? product / square : 0;
}

}  // namespace

RankTest mann_whitney(const std::vector<double>& first, const std::vector<double>& second) {
  RankTest test;
  if (first.empty() || second.empty()) {
    return test;
  }
  const Ranks ranks = rank(first, second);
  const auto n1 = static_cast<double>(first.size());
  const auto n2 = static_cast<double>(second.size());
  test.u = static_cast<double>(ranks.first_sum) / 2 - n1 * (n1 + 1) / 2;
  test.exact = ranks.doubled.size() <= kMostExact;
  test.p = test.exact ? exact_p(ranks, first.size()) : normal_p(test.u, n1, n2, ranks.ties);
  return test;
}

Shift shift_between(const std::vector<double>& first, const std::vector<double>& second,
                    double alpha) {
  check(!first.empty() && !second.empty(), "a shift needs values");
  std::vector<double> x = first;
  std::vector<double> y = second;
  std::sort(x.begin(), x.end());
  std::sort(y.begin(), y.end());
  const std::size_t pairs = x.size() * y.size();
  Shift shift;
  shift.estimate = kth_difference(x, y, (pairs + 1) / 2);
  if (pairs % 2 == 0) {
    shift.estimate = (shift.estimate + kth_difference(x, y, pairs / 2 + 1)) / 2;
  }
  const std::size_t cut = cut_off(x.size(), y.size(), alpha);
  const double infinite = std::numeric_limits<double>::infinity();
  shift.low = cut > 0 ? kth_difference(x, y, cut) : -infinite;
  shift.high = cut > 0 ? kth_difference(x, y, pairs + 1 - cut) : infinite;
  return shift;
}

std::vector<double> holm_adjusted(const std::vector<double>& p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
  std::vector<double> adjusted(p.size());
  double so_far = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    so_far = std::max(so_far, p[order[i]] * static_cast<double>(p.size() - i));
    adjusted[order[i]] = std::min(1.0, so_far);
  }
  return adjusted;
}

std::vector<double> independent_values(std::vector<double> values) {
  constexpr std::size_t kFewest = 20;
  while (values.size() >= kFewest &&
         neighbour_correlation(values) > 2.326 / std::sqrt(static_cast<double>(values.size()))) {
    std::vector<double> merged;
    for (std::size_t i = 0; i + 1 < values.size(); i += 2) {
      merged.push_back((values[i] + values[i + 1]) / 2);
    }
    values = std::move(merged);
  }
  return values;
}

}  // namespace trireme
