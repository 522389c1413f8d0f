#include "src/study/change_points.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/philox.h"

namespace trireme {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Values that scatter by 1 % around a level, with a tail: every eighth is up to 5 % larger.
std::vector<double> noisy(double level, std::uint32_t count, std::uint32_t seed) {
  std::vector<double> values;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto bits = philox({i, seed, 0, 0}, philox_key(1));
    const double tail = bits[2] % 8 == 0 ? 0.05 * uniform_float(bits[3]) : 0;
    values.push_back(level * (1 + 0.02 * (uniform_float(bits[0]) - 0.5) + tail));
  }
  return values;
}

std::vector<double> joined(const std::vector<std::vector<double>>& parts) {
  std::vector<double> all;
  for (const auto& part : parts) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

TEST(ChangePoints, FindsLevels) {
  EXPECT_THAT(change_points(joined({noisy(100, 30, 1), noisy(105, 20, 2), noisy(98, 25, 3)})),
              ElementsAre(30, 50));
  EXPECT_THAT(change_points(joined({noisy(100, 20, 1), noisy(110, 4, 2)})), ElementsAre(20));
}

TEST(ChangePoints, FindsNothingInSteadySeries) {
  int found = 0;
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    found += change_points(noisy(100, 40, seed)).empty() ? 0 : 1;
  }
  EXPECT_LE(found, 2);
  int of_few = 0;
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    of_few += change_points(noisy(100, 20, seed + 1000)).empty() ? 0 : 1;
  }
  EXPECT_LE(of_few, 7) << "1 % of 300, with the scatter of such a count";
  EXPECT_THAT(change_points(std::vector<double>(50, 7.0)), IsEmpty());
}

TEST(ChangePoints, ARecoveryDoesNotHideAChange) {
  for (std::uint32_t after = 1; after <= 20; ++after) {
    const auto found =
        change_points(joined({noisy(100, 15, 1), noisy(120, 15, 2), noisy(100, after, 3)}));
    ASSERT_FALSE(found.empty()) << after;
    EXPECT_EQ(found.front(), 15U) << after;
    EXPECT_EQ(found.size(), after < 3 ? 1U : 2U) << after;
  }
  EXPECT_THAT(change_points(joined({noisy(100, 15, 4), noisy(120, 6, 5), noisy(100, 15, 6)})),
              ElementsAre(15, 21));
}

TEST(ChangePoints, ShortAndLongSeries) {
  EXPECT_THAT(change_points({}), IsEmpty());
  EXPECT_THAT(change_points({1, 1, 1, 9, 9}), IsEmpty());
  std::vector<double> steps = joined({noisy(50, 100, 1), noisy(100, 390, 2), noisy(120, 10, 3)});
  EXPECT_THAT(change_points(steps), ElementsAre(490));  // the newest 300 are searched
}

}  // namespace
}  // namespace trireme
