// The golden numbers come from SciPy; make_golden.py prints them.
#include "src/study/rank_test.h"

#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>

namespace trireme {
namespace {

const std::vector<double> kSmallA = {1.1, 2.5, 0.7, 3.3, 2.9};
const std::vector<double> kSmallB = {2.0, 4.1, 5.7, 3.9};

// The values of make_golden.py.
std::vector<double> generated(std::int64_t seed, int count, std::int64_t levels) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) {
    seed = (seed * 1103515245 + 12345) % (std::int64_t{1} << 31);
    values.push_back(static_cast<double>((seed >> 8) % levels));
  }
  return values;
}

TEST(RankTest, ExactForFewValues) {
  const RankTest small = mann_whitney(kSmallA, kSmallB);
  EXPECT_TRUE(small.exact);
  EXPECT_EQ(small.u, 3);
  EXPECT_NEAR(small.p, 0.1111111111111111, 1e-14);
  const RankTest separate = mann_whitney({1, 2, 3, 4, 5, 6, 7, 8}, {11, 12, 13, 14, 15, 16, 17});
  EXPECT_EQ(separate.u, 0);
  EXPECT_NEAR(separate.p, 0.0003108003108003108, 1e-16);
}

TEST(RankTest, ExactWithTies) {
  const RankTest ties = mann_whitney({1, 2, 2, 3, 5}, {2, 3, 4, 4, 5, 5});
  EXPECT_EQ(ties.u, 7.5);
  EXPECT_NEAR(ties.p, 0.23376623376623376, 1e-14);
  EXPECT_EQ(mann_whitney({3, 3, 3}, {3, 3, 3, 3}).p, 1);
}

TEST(RankTest, NormalWithTies) {
  std::vector<double> second = generated(2, 40, 97);
  for (double& value : second) {
    value += 6;
  }
  const RankTest test = mann_whitney(generated(1, 50, 97), second);
  EXPECT_FALSE(test.exact);
  EXPECT_EQ(test.u, 864.5);
  EXPECT_NEAR(test.p, 0.27287203503959534, 1e-13);
}

TEST(RankTest, ConstantAndMissingValues) {
  EXPECT_EQ(mann_whitney({}, {1, 2}).p, 1);
  const std::vector<double> constant(40, 7.0);
  EXPECT_EQ(mann_whitney(constant, constant).p, 1);  // the variance is 0
  EXPECT_LT(mann_whitney(constant, std::vector<double>(40, 8.0)).p, 1e-10);
}

TEST(Shift, HodgesAndLehmann) {
  const Shift wide = shift_between(kSmallA, kSmallB, 0.05);
  EXPECT_NEAR(wide.estimate, 1.5, 1e-12);
  EXPECT_NEAR(wide.low, -0.9, 1e-12);
  EXPECT_NEAR(wide.high, 4.6, 1e-12);
  const Shift narrow = shift_between(kSmallA, kSmallB, 0.2);
  EXPECT_NEAR(narrow.low, 0.8, 1e-12);
  EXPECT_NEAR(narrow.high, 3.2, 1e-12);
  EXPECT_TRUE(std::isinf(shift_between({1, 2}, {3, 4}, 0.05).low));  // no such interval exists
}

TEST(Shift, ManyValues) {
  const std::vector<double> first = generated(3, 300, 1000);
  std::vector<double> second = first;
  for (double& value : second) {
    value += 50;
  }
  const Shift shift = shift_between(first, second, 0.01);
  EXPECT_EQ(shift.estimate, 50);
  EXPECT_LT(shift.low, 50);
  EXPECT_GT(shift.low, -30);
  EXPECT_NEAR(shift.low + shift.high, 100, 1e-9);  // the differences lie symmetrically
}

TEST(Holm, AdjustsByRank) {
  const std::vector<double> adjusted = holm_adjusted({0.01, 0.04, 0.03, 0.005});
  EXPECT_NEAR(adjusted[0], 0.03, 1e-15);
  EXPECT_NEAR(adjusted[1], 0.06, 1e-15);
  EXPECT_NEAR(adjusted[2], 0.06, 1e-15);
  EXPECT_NEAR(adjusted[3], 0.02, 1e-15);
  EXPECT_TRUE(holm_adjusted({}).empty());
}

TEST(IndependentValues, MergesWhatDriftsTogether) {
  std::vector<double> drifting;
  for (int i = 0; i < 256; ++i) {
    drifting.push_back(std::sin(i / 20.0));
  }
  EXPECT_LT(independent_values(drifting).size(), 20U);
  const std::vector<double> free = generated(4, 256, 1000);
  EXPECT_EQ(independent_values(free), free);
  EXPECT_EQ(independent_values({1, 2, 3}).size(), 3U);
}

}  // namespace
}  // namespace trireme
