#include "src/plan/network/scaling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::HasSubstr;

TEST(Scaling, ReachesSixteenThousandGpus) {
  ScalingPlan plan;
  plan.fabric.nodes = 2048;
  const std::vector<ScalingPoint> points = collective_scaling(plan);
  ASSERT_EQ(points.size(), 12U);
  EXPECT_EQ(points.front().gpus, 8);
  EXPECT_EQ(points.back().gpus, 16'384);
  EXPECT_EQ(points.back().times.size(), 3U);
  // A ring of 16,384 ranks waits for its hops, a tree for its links.
  const auto& last = points.back().times;
  EXPECT_GT(last[0].latency, 0.5 * last[0].seconds);
  EXPECT_LT(last[1].latency, 0.1 * last[1].seconds);
  const nlohmann::json json = nlohmann::json::parse(to_json(plan, points).dump());
  EXPECT_EQ(json["points"].size(), 11 * 3 + 2);
  EXPECT_THAT(to_text(plan, points), HasSubstr("all_reduce of 953.7 MiB on rail"));
  EXPECT_THAT(to_text(plan, points), HasSubstr("  16384   16384         tree*"));
  EXPECT_THAT(to_svg(plan, points), HasSubstr("bus bandwidth, GB/s"));
}

TEST(Scaling, GroupsAlongDpShareTheNetwork) {
  ScalingPlan plan;
  plan.fabric.nodes = 16;
  plan.stride = 8;
  const std::vector<ScalingPoint> points = collective_scaling(plan);
  ASSERT_EQ(points.size(), 4U);  // from two nodes
  EXPECT_EQ(points[0].ranks, 2);
  EXPECT_EQ(points[3].ranks, 16);
  // Each GPU has a NIC of its own, so the rate is that of one NIC.
  EXPECT_NEAR(bus_rate(plan.kind, 16, plan.bytes, points[3].times[0].seconds) / 1e9, 48, 0.5);
}

TEST(Scaling, RefusesWhatCantBe) {
  const auto refusal = [](void (*change)(ScalingPlan&)) {
    ScalingPlan plan;
    plan.fabric.nodes = 8;
    change(plan);
    return message_of<ConfigError>([&] { collective_scaling(plan); });
  };
  EXPECT_THAT(refusal([](ScalingPlan& p) { p.stride = 3; }), HasSubstr("--stride 3"));
  EXPECT_THAT(refusal([](ScalingPlan& p) { p.stride = 64; }), HasSubstr("no two ranks"));
  EXPECT_THAT(refusal([](ScalingPlan& p) { p.bytes = -1; }), HasSubstr("-1 bytes"));
  EXPECT_THAT(refusal([](ScalingPlan& p) { p.fabric.nic_rate = 0; }), HasSubstr("nic_rate"));
  EXPECT_THAT(refusal([](ScalingPlan& p) {
                p.kind = CollectiveKind::all_to_all;
                p.fabric.nodes = 10'000;
              }),
              HasSubstr("at most 4096 nodes"));
}

}  // namespace
}  // namespace trireme
