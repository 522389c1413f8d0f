#include "src/trace/stragglers.h"

#include <gtest/gtest.h>

#include "src/base/median.h"

namespace trireme {
namespace {

std::vector<int> stragglers(const std::vector<ComputeTime>& times) {
  std::vector<int> found;
  int rank = 0;
  for (const Slowness& each : judge_slowness(times)) {
    if (each.straggles) {
      found.push_back(rank);
    }
    ++rank;
  }
  return found;
}

TEST(Stragglers, MedianIsTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({4, 1}), 2.5);
  EXPECT_EQ(median({9, 1, 2}), 2);
}

TEST(Stragglers, ScoresAsPublished) {
  // The median is 1; the distances 0, 0, 0.05, 0.05, 0.1, 0.1, 1 have the median 0.05.
  const std::vector<Slowness> judged =
      judge_slowness({{0, 0.9}, {0, 0.95}, {0, 1.0}, {0, 1.0}, {0, 1.05}, {0, 1.1}, {0, 2.0}});
  EXPECT_NEAR(judged[6].score, 0.6745 * 1.0 / 0.05, 1e-9);
  EXPECT_NEAR(judged[6].of_peers, 2, 1e-9);
  EXPECT_TRUE(judged[6].straggles);
  EXPECT_FALSE(judged[5].straggles);
}

TEST(Stragglers, APairOfPeersIsEnough) {
  EXPECT_EQ(stragglers({{0, 1.0}, {0, 1.02}, {1, 3.0}, {1, 6.0}}), std::vector<int>{3});
}

TEST(Stragglers, OtherWorkIsNoSlowness) {
  EXPECT_EQ(stragglers({{0, 1.0}, {0, 1.01}, {1, 9.0}, {1, 9.02}}), std::vector<int>{});
  EXPECT_EQ(stragglers({{0, 1.0}, {1, 9.0}}), std::vector<int>{});
}

TEST(Stragglers, FivePercentAreNotWorthANight) {
  EXPECT_EQ(stragglers({{0, 1.0}, {0, 1.0}, {0, 1.0}, {0, 1.045}}), std::vector<int>{});
  EXPECT_EQ(stragglers({{0, 1.0}, {0, 1.0}, {0, 1.0}, {0, 1.06}}), std::vector<int>{3});
}

TEST(Stragglers, NoiseRaisesTheBar) {
  EXPECT_EQ(stragglers({{0, 0.7}, {0, 0.8}, {0, 1.0}, {0, 1.2}, {0, 1.3}, {0, 1.5}}),
            std::vector<int>{});
}

TEST(Stragglers, NothingComputedIsNobodySlow) {
  EXPECT_EQ(stragglers({{0, 0.0}, {0, 0.0}, {0, 1.0}}), std::vector<int>{});
  EXPECT_EQ(stragglers({}), std::vector<int>{});
}

}  // namespace
}  // namespace trireme
