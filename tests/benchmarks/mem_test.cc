#include "benchmarks/mem/mem.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "benchmarks/mem/pointer_chase.h"
#include "benchmarks/mem/stream_team.h"
#include "src/base/error.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

void put_file(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text << "\n";
}

TEST(StreamKernels, CountBytesAsStreamDoes) {
  EXPECT_EQ(stream_bytes_per_element(StreamKernel::copy), 16);
  EXPECT_EQ(stream_bytes_per_element(StreamKernel::scale), 16);
  EXPECT_EQ(stream_bytes_per_element(StreamKernel::add), 24);
  EXPECT_EQ(stream_bytes_per_element(StreamKernel::triad), 24);
}

// Values that grew with each round would overflow in a long measurement.
TEST(StreamKernels, LeaveTheValuesWhereTheyWere) {
  double a = 1;
  double b = 2;
  double c = 0;
  for (int round = 0; round < 100'000; ++round) {
    for (const StreamKernel kernel : kStreamKernels) {
      run_stream_once(kernel, a, b, c);
    }
  }
  EXPECT_NEAR(a, 1, 1e-9);
}

class StreamTeamStores : public ::testing::TestWithParam<StreamStores> {};
INSTANTIATE_TEST_SUITE_P(Both, StreamTeamStores,
                         ::testing::Values(StreamStores::ordinary, StreamStores::streaming));

// An odd number of elements, on more threads than lines of an array.
TEST_P(StreamTeamStores, ComputeEveryElementExactly) {
  const PinnedCore core = pinned_cores().front();
  StreamTeam team(std::vector<PinnedCore>(3, core), 8 * 101);
  EXPECT_EQ(team.wrong(), 0);
  EXPECT_EQ(team.array_bytes(), 8 * 101);
  for (int round = 0; round < 3; ++round) {
    for (const StreamKernel kernel : kStreamKernels) {
      EXPECT_GT(team.run(kernel, GetParam()), 0);
      EXPECT_EQ(team.wrong(), 0);
    }
  }
  EXPECT_EQ(team.bytes(StreamKernel::triad), 24.0 * 101);
  team.corrupt(57);
  EXPECT_EQ(team.wrong(), 1);
  team.run(StreamKernel::add, GetParam());
  EXPECT_EQ(team.wrong(), 2);
}

TEST(PointerChase, VisitsAllOfTheMemory) {
  const PinnedCore core = pinned_cores().front();
  PointerChase chase(core, 1000 * PointerChase::kStrideBytes + 5);
  EXPECT_EQ(chase.nodes(), 1000);
  EXPECT_EQ(chase.cycle(), 1000);
  EXPECT_GT(chase.seconds(core, 12'345), 0);
  EXPECT_EQ(chase.cycle(), 1000);
}

TEST(PinnedThreads, TakeOneHardwareThreadOfEachCore) {
  const TempFolder root;
  const fs::path cpus = root.path() / "sys/devices/system/cpu";
  for (const int cpu : {0, 1, 2, 3}) {
    const fs::path folder = cpus / ("cpu" + std::to_string(cpu));
    put_file(folder / "topology/thread_siblings_list", cpu % 2 == 0 ? "0,2" : "1,3");
    fs::create_directories(folder / (cpu % 2 == 0 ? "node0" : "node1"));
  }
  const auto cores = pinned_cores({0, 1, 2, 3}, root.path());
  ASSERT_EQ(cores.size(), 2U);
  EXPECT_EQ(cores[0].cpu, 0);
  EXPECT_EQ(cores[1].cpu, 1);
  EXPECT_EQ(cores[1].numa_node, 1);
  // The launcher may leave only the second hardware thread.
  EXPECT_EQ(pinned_cores({2}, root.path()).front().cpu, 2);
}

TEST(PinnedThreads, PassOnWhatTheWorkThrows) {
  const PinnedCore core = pinned_cores().front();
  EXPECT_THROW(run_pinned({core, core},
                          [](std::size_t i) {
                            if (i == 1) {
                              throw IoError("x");
                            }
                          }),
               IoError);
  EXPECT_THROW(run_pinned({{100'000, 0}}, [](std::size_t) {}), ResourceError);
}

// A machine with two NUMA nodes: the processors of this one, divided between two nodes in a folder
// such as /sys.
TEST(BenchMem, MeasuresEachNumaNodeAndTheWayBetween) {
  const std::vector<PinnedCore> cores = pinned_cores();
  if (cores.size() < 2) {
    GTEST_SKIP() << "needs two cores";
  }
  const TempFolder root;
  for (const PinnedCore& core : cores) {
    fs::create_directories(root.path() / "sys/devices/system/cpu" /
                           ("cpu" + std::to_string(core.cpu)) /
                           (core.cpu == cores.front().cpu ? "node0" : "node1"));
  }
  const BenchMemResult result = bench_mem({.bytes = 2 << 20, .duration = 0.2, .root = root.path()});
  EXPECT_EQ(result.wrong, 0);
  std::map<std::string, int> streams;    // kernels and stores by NUMA node
  std::map<std::string, int> latencies;  // by the nodes of the core and of the memory
  for (const auto& entry : result.results) {
    const auto& params = entry.at("params");
    if (entry.at("name") == "mem_stream") {
      ++streams[params.at("numa_node").dump()];
      const bool first = params.at("numa_node") == 0;
      EXPECT_EQ(params.at("cores"), params.at("numa_node").is_null() ? cores.size()
                                    : first                          ? 1
                                                                     : cores.size() - 1);
      EXPECT_EQ(params.at("array_bytes"), params.at("numa_node").is_null() ? 2 << 20 : 1 << 20);
    } else {
      ++latencies[params.at("from_numa_node").dump() + params.at("to_numa_node").dump()];
      EXPECT_GT(entry.at("metrics").at("latency_ns"), 0);
    }
  }
  EXPECT_EQ(streams, (std::map<std::string, int>{{"0", 8}, {"1", 8}, {"null", 8}}));
  EXPECT_EQ(latencies, (std::map<std::string, int>{{"00", 1}, {"01", 1}, {"10", 1}, {"11", 1}}));
  EXPECT_NE(result.text.find("# NUMA node 1, "), std::string::npos) << result.text;
}

TEST(BenchMem, ChoosesArraysBeyondTheCaches) {
  constexpr std::int64_t kMiB = 1 << 20;
  EXPECT_EQ(choose_array_bytes(0, 100 * kMiB, 10'000 * kMiB, 3), 400 * kMiB);
  EXPECT_EQ(choose_array_bytes(0, 100 * kMiB, 300 * kMiB, 3), 100 * kMiB);
  EXPECT_EQ(choose_array_bytes(0, 0, 10'000 * kMiB, 3), 256 * kMiB);
  EXPECT_EQ(choose_array_bytes(2 * kMiB + 7, 100 * kMiB, 300 * kMiB, 3), 2 * kMiB);
  EXPECT_THROW(choose_array_bytes(101 * kMiB, 100 * kMiB, 300 * kMiB, 3), ConfigError);
  EXPECT_THROW(choose_array_bytes(1000, 100 * kMiB, 300 * kMiB, 3), ConfigError);
  EXPECT_THROW(choose_array_bytes(0, 100 * kMiB, kMiB, 3), ResourceError);
}

}  // namespace
}  // namespace trireme
