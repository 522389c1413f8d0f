#include "src/report/downsample.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

using testing::Contains;
using testing::ElementsAre;

std::vector<double> numbers(std::size_t count) {
  std::vector<double> x;
  for (std::size_t i = 0; i < count; ++i) {
    x.push_back(static_cast<double>(i));
  }
  return x;
}

TEST(Downsample, KeepsAllPointsIfTheyAreFew) {
  EXPECT_THAT(downsample(numbers(4), {3, 1, 2, 5}, 8), ElementsAre(0, 1, 2, 3));
  EXPECT_TRUE(downsample({}, {}, 8).empty());
}

TEST(Downsample, KeepsEndsAndExtremes) {
  std::vector<double> y(10000);
  for (std::size_t i = 0; i < y.size(); ++i) {
    y[i] = std::sin(1e-3 * static_cast<double>(i));
  }
  y[1234] = 50;
  y[1235] = -50;
  const auto kept = downsample(numbers(y.size()), y, 100);
  EXPECT_LE(kept.size(), 102U);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
  for (const std::size_t point : {0, 1234, 1235, 9999}) {
    EXPECT_THAT(kept, Contains(point));
  }
}

// The points that sveinn-steinarsson/flot-downsample's LTTB keeps, computed by hand: a flat line
// with one peak keeps the peak.
TEST(Downsample, EachBucketKeepsItsLargestTriangle) {
  std::vector<double> y(12, 0.0);
  y[5] = 3;
  EXPECT_THAT(downsample(numbers(12), y, 8), Contains(5));
}

TEST(Downsample, AGapStaysAGap) {
  std::vector<double> y(1000, 1.0);
  std::fill(y.begin() + 400, y.begin() + 500, std::nan(""));
  const auto kept = downsample(numbers(1000), y, 50);
  EXPECT_EQ(std::count_if(kept.begin(), kept.end(), [&](auto i) { return std::isnan(y[i]); }), 1);
  EXPECT_THAT(kept, Contains(400));
}

TEST(Downsample, ManyGapsDoNotCrowdOutThePoints) {
  std::vector<double> y(10000);
  for (std::size_t i = 0; i < y.size(); ++i) {
    y[i] = i % 2 == 0 ? 1 : std::nan("");
  }
  EXPECT_LE(downsample(numbers(y.size()), y, 100).size(), 104U);
  EXPECT_TRUE(downsample(numbers(3), {NAN, NAN, INFINITY}, 8).empty());
}

}  // namespace
}  // namespace trireme
