#include "src/train/ending/time_limit.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

using std::chrono::seconds;

class TimeLimits : public ::testing::Test {
 protected:
  TimeLimit::Clock::time_point now_ = TimeLimit::Clock::now();
};

TEST_F(TimeLimits, WithoutAnEnd) {
  TimeLimit limit;
  EXPECT_FALSE(limit.reached(now_ + seconds(1'000'000), 1e9, 1));
}

TEST_F(TimeLimits, AFixedMargin) {
  TimeLimit limit(now_ + seconds(100), 20);
  EXPECT_FALSE(limit.reached(now_ + seconds(79), 1000, 0));
  EXPECT_TRUE(limit.reached(now_ + seconds(81), 0, 0));
}

// The margin is 30 s, two of the longest steps and two of the longest saves.
TEST_F(TimeLimits, AMeasuredMargin) {
  TimeLimit limit(now_ + seconds(1000), std::nullopt);
  EXPECT_FALSE(limit.reached(now_, 0, 0));
  EXPECT_EQ(limit.margin_seconds(0, 0), 30);
  EXPECT_FALSE(limit.reached(now_ + seconds(50), 0, 0));
  EXPECT_FALSE(limit.reached(now_ + seconds(60), 0, 0));
  EXPECT_EQ(limit.margin_seconds(0, 0), 130);
  EXPECT_EQ(limit.margin_seconds(200, 0), 530);
  EXPECT_EQ(limit.margin_seconds(0, 1'000'000'000), 150);
  EXPECT_FALSE(limit.reached(now_ + seconds(100), 200, 0));
  EXPECT_TRUE(limit.reached(now_ + seconds(480), 200, 0));
}

TEST_F(TimeLimits, AnEndThatHasPassed) {
  TimeLimit limit(now_ - seconds(5), std::nullopt);
  EXPECT_TRUE(limit.reached(now_, 0, 0));
}

}  // namespace
}  // namespace trireme
