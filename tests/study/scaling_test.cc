#include "src/study/scaling.h"

#include <cmath>

#include <gtest/gtest.h>

namespace trireme {
namespace {

// Points whose step times follow a function of the number of nodes, scattered by 1 %.
template <class Time>
std::vector<ScalePoint> points_of(const std::vector<int>& nodes, const Time& time) {
  std::vector<ScalePoint> points;
  for (const int n : nodes) {
    ScalePoint point{n, {}};
    for (int repetition = 0; repetition < 3; ++repetition) {
      std::vector<double> steps;
      for (int step = 0; step < 21; ++step) {
        steps.push_back(time(n) * (1 + 0.001 * ((step * 8 + repetition) % 21 - 10)));
      }
      point.step_ms.push_back(steps);
    }
    points.push_back(point);
  }
  return points;
}

TEST(Scaling, StrongFollowsAmdahl) {
  const auto time = [](int n) { return 100 * (0.1 + 0.9 / n); };
  const auto scaling = scaling_of(points_of({1, 2, 4, 8}, time), false);
  for (const Scaling& point : scaling) {
    EXPECT_NEAR(point.speedup, 100 / time(point.nodes), 0.02 * point.speedup);
    EXPECT_NEAR(point.efficiency.estimate * point.nodes, point.speedup, 1e-12);
    EXPECT_LE(point.efficiency.low, point.efficiency.estimate);
    EXPECT_GE(point.efficiency.high, point.efficiency.estimate);
    EXPECT_LT(point.efficiency.high - point.efficiency.low, 0.05);
  }
  const auto fit = fit_serial_fraction(scaling, false);
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->serial, 0.1, 0.005);
  EXPECT_LT(fit->rms_residual, 0.1);
  EXPECT_EQ(fit->residuals.size(), 4U);
}

TEST(Scaling, WeakFollowsGustafson) {
  const auto time = [](int n) { return 100 * n / (n - 0.2 * (n - 1)); };
  const auto scaling = scaling_of(points_of({2, 4, 8}, [&](int n) { return time(n / 2); }), true);
  EXPECT_NEAR(scaling[2].efficiency.estimate, 100 / time(4), 0.02);
  const auto fit = fit_serial_fraction(scaling, true);
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->serial, 0.2, 0.01);
}

TEST(Scaling, UniversalLawHasAPeak) {
  const auto time = [](int n) { return 100.0 / n * (1 + 0.05 * (n - 1) + 0.01 * n * (n - 1)); };
  const auto scaling = scaling_of(points_of({1, 2, 4, 8, 16}, time), false);
  const auto fit = fit_usl(scaling);
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->contention, 0.05, 0.01);
  EXPECT_NEAR(fit->coherency, 0.01, 0.001);
  ASSERT_TRUE(fit->peak_nodes);
  EXPECT_NEAR(*fit->peak_nodes, std::sqrt(0.95 / 0.01), 0.5);
}

TEST(Scaling, PerfectScalingHasNoPeak) {
  const auto scaling = scaling_of(points_of({1, 2, 4}, [](int n) { return 100.0 / n; }), false);
  EXPECT_EQ(fit_serial_fraction(scaling, false)->serial, 0);
  EXPECT_FALSE(fit_usl(scaling)->peak_nodes);
  EXPECT_EQ(knee_of(scaling, 0.8), 2U);
}

TEST(Scaling, KneeIsTheLastEfficientPoint) {
  const auto time = [](int n) { return n == 4 ? 60.0 : 100.0 / n; };
  const auto scaling = scaling_of(points_of({1, 2, 4, 8}, time), false);
  EXPECT_EQ(knee_of(scaling, 0.8), 1U);  // although 8 nodes would be efficient again
  EXPECT_EQ(knee_of(scaling, 0.1), 3U);
}

TEST(Scaling, FewPointsAreNotFitted) {
  const auto one = scaling_of(points_of({2}, [](int) { return 5.0; }), false);
  EXPECT_EQ(one[0].speedup, 1);
  EXPECT_FALSE(fit_serial_fraction(one, false));
  const auto two = scaling_of(points_of({1, 2}, [](int n) { return 5.0 / n; }), false);
  EXPECT_TRUE(fit_serial_fraction(two, false));
  EXPECT_FALSE(fit_usl(two));
}

TEST(Knee, IsUncertainIfAnIntervalIncludesTheThreshold) {
  const auto point = [](int nodes, double low, double estimate, double high) {
    return Scaling{nodes, 1, 1, {estimate, low, high}};
  };
  const Scaling one = point(1, 1, 1, 1);
  const auto open = [](const std::vector<Scaling>& points) {
    const Scaling* const found = first_uncertain(points, knee_of(points, 0.8), 0.8);
    return found == nullptr ? 0 : found->nodes;
  };
  EXPECT_EQ(open({one, point(2, 0.85, 0.9, 0.95), point(4, 0.6, 0.7, 0.75)}), 0);
  EXPECT_EQ(open({one, point(2, 0.75, 0.9, 0.95), point(4, 0.6, 0.7, 0.75)}), 2);
  EXPECT_EQ(open({one, point(2, 0.85, 0.9, 0.95), point(4, 0.6, 0.7, 0.85)}), 4);
  EXPECT_EQ(open({one, point(2, 0.85, 0.9, 0.95)}), 0);
  EXPECT_EQ(open({one}), 0);
  EXPECT_EQ(open({one, point(2, 0.5, 0.6, 0.7), point(4, 0.1, 0.9, 2)}), 0);
}

}  // namespace
}  // namespace trireme
