// Compares two sets of measurements by their ranks, which needs no assumption about their
// distribution. Pure functions.
#pragma once

#include <vector>

namespace trireme {

struct RankTest {
  // U of the first set (Mann and Whitney, 1947): in how many pairs its value is the larger one,
  // where equal values count half.
  double u = 0;
  double p = 1;  // two-sided
  bool exact = false;
};

// Up to this many values in both sets together, p is exact.
inline constexpr std::size_t kMostExact = 60;

// Tests whether the two sets come from one distribution. p is exact for few values, also if some
// are equal: the distribution of the rank sums is that of all divisions of the values into two
// sets (Streitberg and Roehmel, 1986). Otherwise p is that of the normal approximation with
// corrections for ties and continuity, as scipy.stats.mannwhitneyu computes it. An empty set gives
// p = 1. All values are finite.
RankTest mann_whitney(const std::vector<double>& first, const std::vector<double>& second);

struct Shift {
  double estimate = 0;  // median of all differences second - first (Hodges and Lehmann, 1963)
  double low = 0;       // bounds of the confidence interval that belongs to the test; infinite if
  double high = 0;      // there are too few values for this confidence
};

// alpha: 0.05 for an interval of 95 %. Both sets have at least one value, and all are finite.
Shift shift_between(const std::vector<double>& first, const std::vector<double>& second,
                    double alpha);

// Adjusts the p-values of several tests, so that the probability that any of the true hypotheses
// is rejected stays below the level (Holm, 1979).
std::vector<double> holm_adjusted(const std::vector<double>& p);

// Returns values that do not depend on their neighbours. As long as the correlation between
// neighbours is significant (1 %, one-sided) and there are at least 20 values, neighbours are
// replaced by their mean. Times of consecutive steps drift together: as separate values, they would
// claim a certainty that they do not have.
std::vector<double> independent_values(std::vector<double> values);

}  // namespace trireme
