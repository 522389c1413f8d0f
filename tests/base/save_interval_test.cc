#include "src/base/save_interval.h"

#include <cmath>

#include <gtest/gtest.h>

namespace trireme {
namespace {

// Returns the whole time of a run of `work` seconds with random failures and a save every `t`
// seconds (Daly 2006, eq. 13, without restarts). d: the time of a save. m: the mean time between
// failures.
double run_time(double work, double t, double d, double m) {
  return m * (std::exp((t + d) / m) - 1) * work / t;
}

TEST(BestInterval, IsTheBestOfTheExactModel) {
  for (const double m : {600.0, 3600.0, 86400.0}) {
    for (const double d : {0.01, 1.0, 20.0}) {
      const double best = best_interval(d, m);
      const double at_best = run_time(1e6, best, d, m);
      for (const double factor : {0.5, 0.8, 1.25, 2.0}) {
        EXPECT_LT(at_best, run_time(1e6, factor * best, d, m)) << m << " " << d << " " << factor;
      }
    }
  }
}

TEST(BestInterval, IsYoungsWhereSavesAreCheap) {
  EXPECT_NEAR(best_interval(0.001, 86400), std::sqrt(2 * 0.001 * 86400), 0.01);
  EXPECT_NEAR(best_interval(60, 86400), 3180.1, 0.1);  // Young's less a minute (Daly's correction)
}

TEST(BestInterval, StopsAtTheTimeBetweenFailures) {
  EXPECT_EQ(best_interval(200, 100), 100);
  EXPECT_EQ(best_interval(1e9, 100), 100);
  EXPECT_EQ(best_interval(0, 100), 0);
}

}  // namespace
}  // namespace trireme
