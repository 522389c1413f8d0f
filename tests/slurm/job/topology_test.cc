#include "slurm/job/topology.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

// The text is that of scontrol in Slurm 22.05.
TEST(Topology, ANodesGroupIsItsLeafSwitch) {
  const auto groups = parse_topology(
      "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[1-2] \n"
      "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n3,n4\n"
      "SwitchName=s2 Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=s[0-1]\n");
  const std::map<std::string, std::string> expected = {
      {"n1", "s0"}, {"n2", "s0"}, {"n3", "s1"}, {"n4", "s1"}};
  EXPECT_EQ(groups, expected);
}

// The text is that of the block plugin of newer versions.
TEST(Topology, OrItsBlock) {
  const auto groups = parse_topology("BlockName=b1 BlockIndex=0 Nodes=n[01-02] BlockSize=2\n");
  const std::map<std::string, std::string> expected = {{"n01", "b1"}, {"n02", "b1"}};
  EXPECT_EQ(groups, expected);
}

TEST(Topology, WithoutADescriptionThereAreNoGroups) {
  for (const char* text :
       {"", "No topology information available\n", "SwitchName=s0 Level=0 LinkSpeed=1\n",
        "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=(null)\n", "SwitchName=s0 Nodes=n1\n",
        "Level=0 Nodes=n[1-\n", "=\n= = Level=0 SwitchName= Nodes=n1\n"}) {
    EXPECT_TRUE(parse_topology(text).empty()) << text;
  }
}

}  // namespace
}  // namespace trireme
