#include "benchmarks/statistics.h"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

namespace trireme {
namespace {

// For the sorted values 1..100, the bounds are at ranks floor((100 - 19.6) / 2) = 40 and ceil(1 +
// 119.6 / 2) = 61, the well-known interval of n = 100.
TEST(Statistics, IntervalOfAHundred) {
  std::vector<double> values(100);
  std::iota(values.rbegin(), values.rend(), 1.0);
  const MedianInterval interval = median_interval(values);
  EXPECT_EQ(interval.median, 50.5);
  EXPECT_EQ(interval.low, 40);
  EXPECT_EQ(interval.high, 61);
}

TEST(Statistics, FewValuesGiveTheirRange) {
  const MedianInterval one = median_interval({7});
  EXPECT_EQ(one.low, 7);
  EXPECT_EQ(one.high, 7);
  const MedianInterval three = median_interval({3, 1, 2});
  EXPECT_EQ(three.median, 2);
  EXPECT_EQ(three.low, 1);
  EXPECT_EQ(three.high, 3);
}

// Computed by hand: the median is 3, the distances are 2 1 0 1 97, and MAD is 1.
TEST(Statistics, RobustScores) {
  const auto scores = robust_scores({1, 2, 3, 4, 100});
  EXPECT_NEAR(scores[0], -2 * 0.6745, 1e-12);
  EXPECT_EQ(scores[2], 0);
  EXPECT_NEAR(scores[4], 97 * 0.6745, 1e-12);
}

// MAD is 0, but the mean distance 9/10 still identifies the value that differs.
TEST(Statistics, OneThatDiffersAmongEquals) {
  const auto scores = robust_scores({10, 10, 10, 10, 1, 10, 10, 10, 10, 10});
  EXPECT_NEAR(scores[4], -9 / (1.2533 * 0.9), 1e-12);
  EXPECT_LT(scores[4], kOutlierScore);
  for (const double score : robust_scores({5, 5, 5})) {
    EXPECT_EQ(score, 0);
  }
  EXPECT_TRUE(robust_scores({}).empty());
}

}  // namespace
}  // namespace trireme
