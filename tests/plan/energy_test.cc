// The energy of planned runs, and how it decides what is on the front.
#include <vector>

#include <gtest/gtest.h>

#include "src/plan/outlook.h"
#include "src/plan/search.h"

namespace trireme {
namespace {

TEST(PlannedEnergy, DevicesThatWaitDrawLess) {
  Cluster cluster = load_cluster("test");
  cluster.device.watts = 300;
  cluster.device.idle_watts = 0;
  RunSize size{1e9, 1.0, 1e5, 4, 16};
  size.waiting = 0.5;
  EXPECT_EQ(outlook(cluster, size).device_watts, 300) << "an upper bound";
  cluster.device.idle_watts = 100;
  cluster.failures.per_1000_node_days = 0;
  EXPECT_NEAR(outlook(cluster, size).device_watts, 200, 1e-9);
  size.waiting = 0;
  EXPECT_NEAR(outlook(cluster, size).device_watts, 300, 1e-9);
  cluster.failures.per_1000_node_days = 1000;
  const Outlook failing = outlook(cluster, size);
  EXPECT_LT(failing.device_watts, 300) << "devices wait for a restart";
  EXPECT_GT(failing.busy, failing.goodput) << "lost work is computing, too";
}

TEST(PlannedEnergy, TheFrontHasEnergyOfItsOwn) {
  const auto candidate = [](double days, std::int64_t nodes, double energy) {
    PlanCandidate c;
    c.outlook.days = days;
    c.nodes = nodes;
    c.outlook.kilowatt_hours = energy;
    return c;
  };
  std::vector<PlanCandidate> all = {candidate(1, 2, 10), candidate(1, 2, 9), candidate(2, 2, 8),
                                    candidate(2, 2, 8),  candidate(3, 4, 8), candidate(3, 1, 20)};
  mark_front(all);
  std::vector<bool> front;
  for (const PlanCandidate& each : all) {
    front.push_back(each.on_front);
  }
  EXPECT_EQ(front, (std::vector<bool>{false, true, true, false, false, true}));
}

}  // namespace
}  // namespace trireme
