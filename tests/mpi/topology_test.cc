#include "mpi/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

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
