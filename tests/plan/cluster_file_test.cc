#include "src/plan/cluster_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::filesystem::path kClusters =
    std::filesystem::path(TRIREME_SOURCE_DIR) / "configs/cluster";

// The least that a file has to say, with lines to add or to replace.
std::string least(const std::string& device = "", const std::string& rest = "") {
  return "version: 1\nname: small\nnodes: 2\n"
         "device: {type: x, bf16_tflops: 100, memory: 16GiB, memory_gb_per_s: 900" +
         device + "}\nlinks: {gb_per_s: 50}\nnetwork: {gb_per_s: 25}\n" + rest;
}

Cluster loaded(const std::string& text) {
  const TempFolder folder;
  const std::filesystem::path file = folder.path() / "cluster.yaml";
  write_named_file(file.string(), text);
  return load_cluster(file);
}

std::string refused(const std::string& text) {
  return message_of<ConfigError>([&] { (void)loaded(text); });
}

TEST(ClusterFile, EveryFileOfTheProgramLoads) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kClusters)) {
    const Cluster cluster = load_cluster(entry.path());
    EXPECT_GT(cluster.devices(), 0) << entry.path();
    EXPECT_GT(cluster.failures.per_1000_node_days, 0) << entry.path();
    EXPECT_GT(cluster.storage.write_gb_per_s, 0) << entry.path();
    EXPECT_GT(cluster.device.watts, 0) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 8);
}

// With such figures, times would exceed all numbers, and their sums be NaN.
TEST(ClusterFile, FiguresThatAreAllButZeroAreRefused) {
  for (const char* key : {"fp32_tflops", "fp8_tflops"}) {
    EXPECT_THAT(refused(least(std::string(", ") + key + ": 1e-308")), HasSubstr(key));
    EXPECT_EQ(loaded(least(std::string(", ") + key + ": 0")).devices(), 16);
  }
  for (const char* rest :
       {"efficiency: {attention: 1e-308}\n", "efficiency: {memory: 1e-300}\n",
        "calibration: {products: 1e-308}\n", "storage: {write_gb_per_s: 1e-308}\n"}) {
    EXPECT_THAT(refused(least("", rest)), HasSubstr("1e-06")) << rest;
  }
}

TEST(ClusterFile, DefaultsFillWhatIsNotGiven) {
  const Cluster cluster = loaded(least());
  EXPECT_EQ(cluster.nodes, 2);
  EXPECT_EQ(cluster.devices(), 16);
  EXPECT_EQ(cluster.device.memory, std::int64_t{16} << 30);
  EXPECT_EQ(cluster.network.taper, 1);
  EXPECT_EQ(cluster.failures.per_1000_node_days, 0);
  EXPECT_EQ(cluster.energy.currency, "EUR");
}

TEST(ClusterFile, ShowsEveryKeyWithItsLine) {
  EXPECT_THAT(resolved_cluster(kClusters / "test.yaml"),
              AllOf(HasSubstr("bf16_tflops: 100"), HasSubstr("test.yaml:9"),
                    HasSubstr("residual_percent: 10")));
}

TEST(ClusterFile, ErrorsNameFileLineAndKey) {
  EXPECT_THAT(refused(least(", flops: 3")), AllOf(HasSubstr("cluster.yaml:4"), HasSubstr("flops")));
  EXPECT_THAT(refused(least("", "netwrk: {gb_per_s: 1}\n")),
              AllOf(HasSubstr("cluster.yaml:7"), HasSubstr("netwrk.gb_per_s: unknown key")));
  EXPECT_THAT(refused("version: 1\n"),
              AllOf(HasSubstr("device.bf16_tflops"), HasSubstr("device.type"), HasSubstr("nodes")));
}

TEST(ClusterFile, RefusesAbsurdFigures) {
  for (const char* wrong :
       {", bf16_tflops: -1", ", watts: -5", ", per_node: 0", ", per_node: 1.5", ", launch_us: nan",
        ", watts: inf", ", memory_gb_per_s: 1e12", ", fp8_tflops: 1e400", ", kind: tpu",
        ", idle_watts: 7", ", reserved_memory: 16GiB"}) {
    EXPECT_THAT(refused(least(wrong)), HasSubstr("cluster.yaml:4")) << wrong;
  }
  for (const char* wrong :
       {"efficiency: {products: 0}\n", "efficiency: {network: 1.1}\n",
        "efficiency: {overlap: -1}\n", "failures: {per_1000_node_days: -1}\n",
        "energy: {pue: 0.5}\n", "storage: {write_gb_per_s: -1}\n", "node: {price_per_hour: x}\n"}) {
    EXPECT_THAT(refused(least("", wrong)), HasSubstr("cluster.yaml:7")) << wrong;
  }
  EXPECT_THAT(refused("version: 1\nname: a\nnodes: 0\n"), HasSubstr("cluster.yaml:3"));
  EXPECT_THAT(refused("version: 1\nname: a\nnodes: [4, 8]\n"), HasSubstr("cluster.yaml:3"));
}

TEST(ClusterFile, MemoryWithoutUnitIsASlip) {
  EXPECT_THAT(refused("version: 1\nname: s\nnodes: 1\ndevice: {type: x, bf16_tflops: 100, "
                      "per_node: 1, memory: 80, memory_gb_per_s: 900}\n"),
              HasSubstr("give a unit, as in 80GiB"));
}

TEST(ClusterFile, MemoryAndFailuresHaveSensibleRanges) {
  const auto memory = [](const std::string& size) {
    return "version: 1\nname: s\nnodes: 1\ndevice: {type: x, bf16_tflops: 100, per_node: 1, "
           "memory: " +
           size + ", memory_gb_per_s: 900}\n";
  };
  EXPECT_THAT(refused(memory("0")), HasSubstr("device.memory: 0 is not allowed"));
  EXPECT_THAT(refused(memory("17TiB")), HasSubstr("device.memory: 17TiB is not allowed"));
  EXPECT_EQ(loaded(memory("16TiB")).device.memory, std::int64_t{1} << 44);
  EXPECT_THAT(refused(least("", "failures: {per_1000_node_days: 10001}\n")),
              HasSubstr("10001 is not allowed"));
  EXPECT_EQ(loaded(least("", "failures: {per_1000_node_days: 10000}\n")).nodes, 2);
}

TEST(ClusterFile, AdviceIsThatOfClusterFiles) {
  EXPECT_THAT(refused("version: 1\n"),
              AllOf(HasSubstr("nodes is missing"), HasSubstr("write it into /"),
                    HasSubstr("cluster.yaml"), Not(HasSubstr("=VALUE"))));
  EXPECT_THAT(refused(least("", "zzzzzzzzzz: 1\n")),
              AllOf(HasSubstr("docs/planner.md lists all keys"), Not(HasSubstr("config show"))));
}

TEST(ClusterFile, RanksThatTalkNeedLinks) {
  const std::string device = "device: {type: x, bf16_tflops: 1, memory: 1GiB, memory_gb_per_s: 1";
  EXPECT_THAT(refused("version: 1\nname: a\nnodes: 1\n" + device + "}\n"),
              HasSubstr("links.gb_per_s"));
  EXPECT_THAT(refused("version: 1\nname: a\nnodes: 2\n" + device + ", per_node: 1}\n"),
              HasSubstr("network.gb_per_s"));
  EXPECT_EQ(loaded("version: 1\nname: a\nnodes: 1\n" + device + ", per_node: 1}\n").devices(), 1);
}

TEST(ClusterFile, ComesBackFromItsText) {
  Cluster cluster = load_cluster("h100-pod");
  cluster.name = "a name: with \"marks\" # and more";
  cluster.calibration.tensor = 1.25;
  cluster.device.memory = (std::int64_t{31} << 30) + (std::int64_t{5} << 20);
  const std::string text = cluster_text(
      cluster, {{"", "two lines\nof a comment"}, {"device.memory", "free\nforged: 1"}});
  EXPECT_THAT(text, AllOf(HasSubstr("# two lines\n# of a comment\n"),
                          HasSubstr("  # free\\nforged: 1\n"), HasSubstr("  tensor: 1.25\n")));
  const Cluster back = loaded(text);
  EXPECT_EQ(cluster_text(back, {}), cluster_text(cluster, {}));
  EXPECT_EQ(back.name, cluster.name);
  EXPECT_EQ(back.device.memory, cluster.device.memory);
}

TEST(ClusterFile, RefusesAFactorOfNothing) {
  EXPECT_THAT(refused(least("", "calibration: {tensor: 0}\n")), HasSubstr("cluster.yaml:7"));
  EXPECT_THAT(refused(least("", "calibration: {bubble: 1}\n")), HasSubstr("unknown key"));
}

TEST(ClusterFile, RefusesAFileOfANewerVersion) {
  std::string text = least();
  text.replace(text.find('1'), 1, "2");
  EXPECT_THAT(refused(text), AllOf(HasSubstr("cluster.yaml:1"), HasSubstr("newer program")));
}

}  // namespace
}  // namespace trireme
