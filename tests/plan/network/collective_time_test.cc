#include "src/plan/network/collective_time.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

using enum CollectiveAlgorithm;
using enum CollectiveKind;

// A fabric of round numbers, without latencies: 100 bytes per second within nodes, and 10 for each
// of two NICs of four GPUs.
Fabric round_fabric(FabricKind kind, std::int64_t nodes) {
  Fabric fabric;
  fabric.kind = kind;
  fabric.nodes = nodes;
  fabric.gpus_per_node = 4;
  fabric.nics_per_node = 2;
  fabric.link_rate = 100;
  fabric.nic_rate = 10;
  fabric.link_latency = fabric.nic_latency = fabric.switch_latency = 0;
  fabric.nodes_per_leaf = 4;
  fabric.nodes_per_group = 4;
  return fabric;
}

std::vector<GpuGroup> all_of(const Fabric& fabric) {
  return gpu_groups(fabric, fabric.gpus(), fabric.gpus(), 1);
}

double seconds(const Fabric& fabric, CollectiveAlgorithm algorithm, double bytes,
               CollectiveKind kind = all_reduce) {
  return collective_time(fabric, all_of(fabric), kind, algorithm, bytes).value().seconds;
}

TEST(CollectiveTime, OfARingIsThatOfItsSlowestLink) {
  const Fabric one = round_fabric(FabricKind::fat_tree, 1);
  EXPECT_NEAR(seconds(one, ring, 400), 2 * 400 * 3 / 4.0 / 100, 1e-9);
  // Four nodes have 16 ranks; each node sends 2 (15/16) S through two NICs.
  const Fabric four = round_fabric(FabricKind::fat_tree, 4);
  const CollectiveTime time = *collective_time(four, all_of(four), all_reduce, ring, 400);
  EXPECT_NEAR(time.seconds, 2 * 400 * 15 / 16.0 / 20, 1e-9);
  EXPECT_EQ(time.bottleneck, LinkLevel::nic);
  EXPECT_NEAR(bus_rate(all_reduce, 16, 400, time.seconds), 20, 1e-9);
  EXPECT_NEAR(seconds(four, ring, 400, all_gather), time.seconds / 2, 1e-9);
}

// A tree loads a NIC of two nodes half as much as those of more, which is why NCCL's tests report
// more than the network's rate for two nodes.
TEST(CollectiveTime, OfATree) {
  EXPECT_NEAR(seconds(round_fabric(FabricKind::fat_tree, 2), tree, 400), 400 / 20.0, 1e-9);
  const double eight = seconds(round_fabric(FabricKind::fat_tree, 8), tree, 400);
  EXPECT_NEAR(eight, 2 * 400 / 20.0, 0.26 * eight);
  EXPECT_FALSE(collective_time(round_fabric(FabricKind::fat_tree, 1),
                               all_of(round_fabric(FabricKind::fat_tree, 1)), all_reduce, tree, 1));
}

TEST(CollectiveTime, HierarchicalIsTheSumOfItsPhases) {
  const Fabric four = round_fabric(FabricKind::fat_tree, 4);
  const double within = 2 * 400 * 3 / 4.0 / 100;
  const double between = 2 * 400 * 3 / 4.0 / 20;
  EXPECT_NEAR(seconds(four, hierarchical, 400), within + between, 1e-9);
  const Fabric three = round_fabric(FabricKind::fat_tree, 3);
  EXPECT_FALSE(collective_time(three, all_of(three), all_reduce, hierarchical, 400));
}

TEST(CollectiveTime, AllToAll) {
  const Fabric four = round_fabric(FabricKind::fat_tree, 4);
  // Of 400 bytes of a rank, 300 leave the node, in which two GPUs share a NIC.
  EXPECT_NEAR(seconds(four, pairwise, 400, all_to_all), 300 * 2 / 10.0, 1e-9);
  EXPECT_FALSE(collective_time(four, all_of(four), all_to_all, ring, 400));
}

TEST(CollectiveTime, LatencyIsThatOfTheHops) {
  Fabric four = round_fabric(FabricKind::fat_tree, 4);
  four.link_latency = 1;
  four.nic_latency = 10;
  four.switch_latency = 2;
  EXPECT_DOUBLE_EQ(seconds(four, ring, 0), 2 * (4 * 3 * 1 + 3 * 12));
  EXPECT_DOUBLE_EQ(seconds(four, tree, 0), 2 * (3 * 1 + 2 * 12));
  EXPECT_DOUBLE_EQ(seconds(four, hierarchical, 0), 2 * (3 * 1) + 2 * 2 * 12);
  four.nodes_per_leaf = 2;  // half of the way leads over a core switch
  EXPECT_DOUBLE_EQ(seconds(four, hierarchical, 0), 2 * (3 * 1) + 2 * 12 + 2 * 16);
}

TEST(CollectiveTime, ConcurrentGroupsShareTheNics) {
  const Fabric fabric = round_fabric(FabricKind::fat_tree, 4);
  // Four groups of one GPU per node, as of dp with tp 4. A NIC carries two of them.
  const auto groups = gpu_groups(fabric, 16, 4, 4);
  ASSERT_EQ(groups.size(), 4U);
  EXPECT_EQ(groups[1], (GpuGroup{1, 5, 9, 13}));
  const double alone = collective_time(fabric, {groups[0]}, all_reduce, ring, 400)->seconds;
  EXPECT_NEAR(alone, 2 * 400 * 3 / 4.0 / 10, 1e-9);
  EXPECT_NEAR(collective_time(fabric, groups, all_reduce, ring, 400)->seconds, 2 * alone, 1e-9);
}

TEST(CollectiveTime, OversubscriptionCostsWhereTransfersCrossIt) {
  Fabric fabric = round_fabric(FabricKind::fat_tree, 16);
  fabric.leaf_taper = 0.25;  // five nodes' worth of NICs share one
  // A ring in the order of nodes leaves each leaf once: four nodes' NICs have the rate for one.
  const auto ordered = all_of(fabric);
  const double in_order = collective_time(fabric, ordered, all_reduce, ring, 400)->seconds;
  EXPECT_NEAR(in_order, 2 * 400 * 63 / 64.0 / 20, 1e-9);
  const CollectiveTime mixed =
      *collective_time(fabric, scattered(fabric, ordered, 1), all_reduce, ring, 400);
  EXPECT_GT(mixed.seconds, 1.9 * in_order);
  EXPECT_EQ(mixed.bottleneck, LinkLevel::leaf);
  // The exchange over the longest distance crosses leaves with all NICs at once.
  EXPECT_GT(seconds(fabric, hierarchical, 400), 2 * in_order);
}

TEST(CollectiveTime, ARailKeepsItsTransfers) {
  Fabric rail = round_fabric(FabricKind::rail, 4);
  // From GPU 0 of node 0 to GPU 2 of node 1, which is on another rail.
  Traffic traffic(rail);
  traffic.add(0, 6, 10);
  EXPECT_NEAR(traffic.seconds(LinkLevel::link), 0.1, 1e-9);
  EXPECT_NEAR(traffic.seconds(LinkLevel::nic), 1, 1e-9);
  Traffic tree_traffic(round_fabric(FabricKind::fat_tree, 4));
  EXPECT_EQ(traffic.bottleneck(), LinkLevel::nic);
}

TEST(CollectiveTime, ADragonflySpreadsWhatOneLinkCantCarry) {
  Fabric fabric = round_fabric(FabricKind::dragonfly, 16);
  fabric.global_taper = 0.5;
  // All nodes of a group send to the next group: one of three links, or all by a third group.
  Traffic traffic(fabric);
  for (std::int64_t node = 0; node < 16; ++node) {
    traffic.add(4 * node, 4 * ((node + 4) % 16), 30);
  }
  const double pair_rate = 4 * 2 * 10 * 0.5 / 3;
  EXPECT_NEAR(traffic.seconds(LinkLevel::global), 2 * (16 * 30 / 12.0) / pair_rate, 1e-9);
  EXPECT_EQ(traffic.bottleneck(), LinkLevel::global);
}

TEST(CollectiveTime, GroupsMustBeEven) {
  const Fabric fabric = round_fabric(FabricKind::fat_tree, 2);
  EXPECT_THROW(collective_time(fabric, {{0, 1, 4}}, all_reduce, ring, 1), InternalError);
  EXPECT_THROW(collective_time(fabric, {{0, 8}}, all_reduce, ring, 1), InternalError);
  EXPECT_EQ(collective_time(fabric, {{5}}, all_reduce, ring, 1)->seconds, 0);
}

TEST(Fabric, RefusesWhatCantBe) {
  const auto refuses = [](void (*change)(Fabric&)) {
    Fabric fabric;
    change(fabric);
    EXPECT_THROW(check_fabric(fabric), ConfigError);
  };
  EXPECT_NO_THROW(check_fabric(Fabric{}));
  refuses([](Fabric& f) { f.nodes = 0; });
  refuses([](Fabric& f) { f.nodes = std::int64_t{1} << 40; });
  refuses([](Fabric& f) { f.nic_rate = 0; });
  refuses([](Fabric& f) { f.nic_rate = -1; });
  refuses([](Fabric& f) { f.link_rate = std::numeric_limits<double>::infinity(); });
  refuses([](Fabric& f) { f.nic_latency = std::numeric_limits<double>::quiet_NaN(); });
  refuses([](Fabric& f) { f.leaf_taper = 0; });
  refuses([](Fabric& f) { f.spread = 1.5; });
  refuses([](Fabric& f) { f.leaves_per_pod = -1; });
  refuses([](Fabric& f) { f.nics_per_node = 3; });
}

}  // namespace
}  // namespace trireme
