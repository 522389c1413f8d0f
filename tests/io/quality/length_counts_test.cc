#include "io/quality/length_counts.h"

#include <algorithm>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/philox.h"

namespace trireme {
namespace {

using testing::ElementsAre;

TEST(LengthCounts, SmallLengthsAreExact) {
  LengthCounts lengths;
  for (const std::int64_t length : {63, 0, 5, 5, 1, 40}) {
    lengths.add(length);
  }
  EXPECT_EQ(lengths.count(), 6);
  EXPECT_EQ(lengths.sum(), 114);
  EXPECT_EQ(lengths.least(), 0);
  EXPECT_EQ(lengths.most(), 63);
  EXPECT_EQ(lengths.quantile(0), 0);
  EXPECT_EQ(lengths.quantile(0.5), 5);
  EXPECT_EQ(lengths.quantile(0.8), 40);
  EXPECT_EQ(lengths.quantile(1), 63);
  EXPECT_THAT(lengths.by_power_of_two(), ElementsAre(2, 0, 2, 0, 0, 2));
  EXPECT_EQ(LengthCounts().quantile(0.5), 0);
}

TEST(LengthCounts, QuantilesAreRightToThreePercent) {
  LengthCounts all;
  LengthCounts halves[2];
  std::vector<std::int64_t> exact;
  for (std::uint64_t i = 0; i < 20'480; ++i) {
    const auto length = static_cast<std::int64_t>(mix64(i) >> (30 + mix64(i + 77) % 30));
    exact.push_back(length);
    all.add(length);
    halves[i % 2].add(length);
  }
  std::ranges::sort(exact);
  for (const double q : {1.0 / 64, 0.25, 0.5, 0.875, 1023.0 / 1024}) {
    const auto wanted = static_cast<double>(
        exact[static_cast<std::size_t>(q * static_cast<double>(exact.size())) - 1]);
    EXPECT_LE(static_cast<double>(all.quantile(q)), wanted);
    EXPECT_GE(static_cast<double>(all.quantile(q)), wanted * 31 / 32 - 1) << q;
  }
  halves[0] += halves[1];
  EXPECT_EQ(halves[0].numbers(), all.numbers());
  EXPECT_EQ(LengthCounts::from_numbers(all.numbers()).numbers(), all.numbers());
  LengthCounts none;
  none += all;
  EXPECT_EQ(none.least(), exact.front());
  none.add(std::numeric_limits<std::int64_t>::max() / 2);
  EXPECT_EQ(none.quantile(1), std::int64_t{63} << 56);
}

}  // namespace
}  // namespace trireme
