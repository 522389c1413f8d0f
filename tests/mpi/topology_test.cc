#include "mpi/topology.h"

#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::HasSubstr;

// The binding follows the affinity mask of the thread that asks.
TEST(Topology, BindingIsTheAffinityMask) {
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(all), &all), 0);
  const CoreBinding whole = current_binding();
  EXPECT_GE(whole.cores, 1);
  EXPECT_LE(whole.cores, CPU_COUNT(&all));
  int first = 0;
  while (!CPU_ISSET(first, &all)) {
    ++first;
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
  const CoreBinding narrow = current_binding();
  ASSERT_EQ(::sched_setaffinity(0, sizeof(all), &all), 0);
  EXPECT_EQ(narrow.cores, 1);
  EXPECT_EQ(narrow.cpus, std::to_string(first));
  // One core lies in one socket.
  EXPECT_THAT(narrow.packages, testing::MatchesRegex("[0-9]+"));
  EXPECT_FALSE(whole.numa_nodes.empty());
}

TEST(Topology, TheHostHoldsTheBinding) {
  const HostShape shape = host_shape();
  EXPECT_GE(shape.cores, current_binding().cores);
  EXPECT_GE(shape.cores, shape.packages);
  EXPECT_THAT(shape.text(), HasSubstr(std::to_string(shape.cores) + " core"));
}

TEST(Topology, TextSaysOneAndMany) {
  HostShape shape{.packages = 1, .numa_nodes = 2, .cores = 64, .network_devices = {}};
  EXPECT_EQ(shape.text(), "1 socket, 2 NUMA nodes, 64 cores; no network device on the PCI bus");
  shape.network_devices = {"eth0 (Ethernet)", "mlx5_0 (OpenFabrics, NUMA 1)"};
  EXPECT_THAT(shape.text(), HasSubstr("; eth0 (Ethernet), mlx5_0 (OpenFabrics, NUMA 1)"));
}

TEST(Topology, ReadsLists) {
  EXPECT_THAT(numbers_in("0-2,8"), testing::ElementsAre(0, 1, 2, 8));
  EXPECT_THAT(numbers_in(""), testing::IsEmpty());
  EXPECT_THAT(numbers_in("word"), testing::IsEmpty());
}

// The file describes a machine with two NUMA nodes, in hwloc's format, and a GPU at the second.
TEST(Topology, FindsTheNumaNodeOfADevice) {
  const TempFolder folder;
  const auto file = folder.path() / "machine.xml";
  std::ofstream(file) << R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
 <object type="Machine" os_index="0" cpuset="0x3" complete_cpuset="0x3" allowed_cpuset="0x3"
   nodeset="0x3" complete_nodeset="0x3" allowed_nodeset="0x3" gp_index="1">
  <object type="Package" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1"
    complete_nodeset="0x1" gp_index="2">
   <object type="NUMANode" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1"
     complete_nodeset="0x1" gp_index="3" local_memory="1000000"/>
   <object type="Core" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1"
     complete_nodeset="0x1" gp_index="4">
    <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1"
      complete_nodeset="0x1" gp_index="5"/>
   </object>
  </object>
  <object type="Package" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x2"
    complete_nodeset="0x2" gp_index="6">
   <object type="NUMANode" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x2"
     complete_nodeset="0x2" gp_index="7" local_memory="1000000"/>
   <object type="Core" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x2"
     complete_nodeset="0x2" gp_index="8">
    <object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x2"
      complete_nodeset="0x2" gp_index="9"/>
   </object>
   <object type="Bridge" gp_index="10" bridge_type="0-1" depth="0" bridge_pci="0000:[1a-1b]">
    <object type="PCIDev" gp_index="11" pci_busid="0000:1b:00.0"
      pci_type="0302 [10de:2330] [10de:16c1] a1" pci_link_speed="63.0"/>
   </object>
  </object>
 </object>
</topology>
)";
  ::setenv("HWLOC_XMLFILE", file.c_str(), 1);
  const std::optional<int> there = numa_node_of("0000:1b:00.0");
  const std::optional<int> unknown = numa_node_of("0000:1c:00.0");
  ::unsetenv("HWLOC_XMLFILE");
  EXPECT_EQ(there, 1);
  EXPECT_EQ(unknown, std::nullopt);
}

RankPlace place(int rank, const std::string& host, const std::string& cpus) {
  RankPlace result;
  result.rank = rank;
  result.host = host;
  result.binding.cores = 8;
  result.binding.cpus = cpus;
  return result;
}

TEST(Topology, PlacesAreCountedPerHost) {
  std::vector<RankPlace> places = {place(0, "a", "0-7"), place(1, "b", "0-3"), place(2, "a", "0-7"),
                                   place(3, "b", "4-7")};
  complete_places(places);
  EXPECT_EQ(places[2].local_rank, 1);
  EXPECT_EQ(places[2].local_size, 2);
  EXPECT_EQ(places[2].sharers, 2);
  EXPECT_EQ(places[2].threads(), 4);
  EXPECT_EQ(places[3].local_rank, 1);
  EXPECT_EQ(places[3].sharers, 1);
  EXPECT_EQ(places[3].threads(), 8);
}

TEST(RankPlace, SharedCoresAreDivided) {
  RankPlace alone;
  alone.binding.cores = 8;
  EXPECT_EQ(alone.threads(), 8);
  alone.sharers = 3;
  EXPECT_EQ(alone.threads(), 2);
  alone.sharers = 9;
  EXPECT_EQ(alone.threads(), 1);
}

}  // namespace
}  // namespace trireme
