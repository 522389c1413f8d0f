// Computes statistics of repeated measurements. Pure functions.
#pragma once

#include <vector>

namespace trireme {

struct MedianInterval {
  double median = 0;
  double low = 0;  // bounds of the 95 % confidence interval
  double high = 0;
};

// Returns the median and a confidence interval from order statistics, without assumptions about the
// distribution: of n sorted values, those at the (1-based) ranks floor((n - 1.96 sqrt n) / 2) and
// ceil(1 + (n + 1.96 sqrt n) / 2) (Hoefler and Belli, SC'15, section 3.1.3), limited to 1..n.
// values: at least one.
MedianInterval median_interval(std::vector<double> values);

// Returns the distance of each value from the median in robust standard deviations: 0.6745 (x -
// median) / MAD, where MAD is the median of |x - median| (Iglewicz and Hoaglin, 1993). If more than
// half of the values are equal, MAD is 0, and (x - median) / (1.2533 times the mean of |x -
// median|) is used instead.
std::vector<double> robust_scores(const std::vector<double>& values);

// A measurement with a robust score below this is an outlier.
inline constexpr double kOutlierScore = -2;

}  // namespace trireme
