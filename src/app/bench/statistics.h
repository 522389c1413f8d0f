// What repeated measurements say. Pure functions.
#pragma once

#include <vector>

namespace trireme {

struct MedianInterval {
  double median = 0;
  double low = 0;  // 95 % confidence
  double high = 0;
};

// The median and its interval from order statistics, without a guess at the distribution: of n
// sorted values those at the (1-based) ranks floor((n - 1.96 sqrt n) / 2) and
// ceil(1 + (n + 1.96 sqrt n) / 2) (Hoefler and Belli, SC'15, section 3.1.3), within the n there
// are. At least one value.
MedianInterval median_interval(std::vector<double> values);

// How far each value lies from the median, in robust standard deviations:
// 0.6745 (x - median) / MAD, MAD the median of |x - median| (Iglewicz and Hoaglin, 1993). Where
// more than half of the values are equal MAD is 0; then (x - median) / (1.2533 times the mean of
// |x - median|) stands in.
std::vector<double> robust_scores(const std::vector<double>& values);

// Below this robust score a measurement is an outlier.
inline constexpr double kOutlierScore = -2;

}  // namespace trireme
