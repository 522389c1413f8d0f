#include "slurm/render/site_profile.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "slurm/render/measured_times.h"
#include "src/base/error.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SiteProfileFile : public ::testing::Test {
 protected:
  SiteProfile load(const std::string& yaml) {
    const auto file = folder_.path() / "site.yaml";
    std::ofstream(file) << yaml;
    return load_site_profile(file);
  }
  TempFolder folder_;
};

TEST_F(SiteProfileFile, Values) {
  const SiteProfile site = load(
      "slurm: {partition: p, time: '2-00:00:00', options: [--hint=nomultithread]}\n"
      "node: {ranks: 4, cpus_per_rank: 8}\n"
      "environment: {variables: ['A=b c', _X9=]}\n");
  EXPECT_EQ(site.slurm.partition, "p");
  EXPECT_EQ(site.slurm.time, "2-00:00:00");
  EXPECT_EQ(site.node.ranks, 4);
  EXPECT_EQ(site.launch.launcher, "mpirun");
  EXPECT_THAT(site.environment.variables, ElementsAre("A=b c", "_X9="));
}

TEST_F(SiteProfileFile, WhatIsWrong) {
  for (const auto& [yaml, words] :
       {std::pair("slurm: {partitions: x}", "slurm.partition"),
        std::pair("slurm: {partition: 'a b'}", "slurm.partition"),
        std::pair("slurm: {account: \"a\\n#SBATCH\"}", "slurm.account"),
        std::pair("slurm: {time: soon}", "slurm.time"),
        std::pair("slurm: {options: [constraint]}", "slurm.options"),
        std::pair("slurm: {requeue: maybe}", "requeue|chain"),
        std::pair("node: {ranks: 0}", "node.ranks"),
        std::pair("node: {scratch: tmp}", "node.scratch"),
        std::pair("launch: {launcher: ssh}", "mpirun|srun"),
        std::pair("node: {gpus: 4, gpu_type: 'a100:4'}", "node.gpu_type"),
        std::pair("node: {gpus: 4, gpu_request: all}", "per-node|per-task|gres|mps"),
        std::pair("node: {gpus: 2, mps_shares: 50, gpu_request: mps}", "node.gpus: 1"),
        std::pair("node: {gpus: 1, gpu_request: mps}", "node.mps_shares"),
        std::pair("node: {gpus: 4, gpu_request: per-task}", "launch.launcher: srun"),
        std::pair("node: {gpus: 3, ranks: 2, gpu_request: per-task}", "node.ranks 2"),
        std::pair("launch: {gpu_bind: closest}", "launch.launcher: srun"),
        std::pair("slurm: {constraint: 'a b'}", "slurm.constraint"),
        std::pair("environment: {modules: [-x]}", "environment.modules"),
        std::pair("environment: {modules: ['a;b']}", "modules"),
        std::pair("environment: {variables: [x]}", "NAME=VALUE"),
        std::pair("environment: {variables: ['9=x']}", "NAME=VALUE"),
        std::pair("environment: {variables: ['a b=x']}", "NAME=VALUE"),
        std::pair("environment: {variables: [=x]}", "NAME=VALUE")}) {
    EXPECT_THAT(message_of<ConfigError>([&, y = yaml] { load(y); }), HasSubstr(words)) << yaml;
  }
  EXPECT_THROW(load_site_profile(folder_.path() / "absent.yaml"), NotFound);
}

TEST(MeasuredTimes, FromTheRunsFiles) {
  const TempFolder folder;
  EXPECT_FALSE(measured_times(folder.path()).step_seconds);
  std::ofstream(folder.path() / "metrics.jsonl")
      << R"({"step":1,"step_ms":2500})"
      << "\nnonsense\n"
      << R"({"step":2,"step_ms":1500})"
      << "\n{\"step\":3,\"step_ms\":null}\n[1]\n{\"step\":4,\"step_ms\":-9e9}\n{\"step_ms\":9";
  std::filesystem::create_directory(folder.path() / "logs");
  std::ofstream(folder.path() / "logs/rank-00000.jsonl")
      << R"({"event":"checkpoint","seconds":12.5})"
      << "\n"
      << R"({"event":"other","seconds":99})"
      << "\n"
      << R"({"event":7,"seconds":99})"
      << "\n";
  const MeasuredTimes times = measured_times(folder.path());
  EXPECT_EQ(times.step_seconds, 2.5);
  EXPECT_EQ(times.save_seconds, 12.5);
  EXPECT_EQ(times.damaged_metrics.count, 2);
  EXPECT_EQ(times.damaged_metrics.first, 2);
  EXPECT_TRUE(times.damaged_metrics.last_is_unfinished);
  EXPECT_EQ(times.damaged_log.count, 0);
}

}  // namespace
}  // namespace trireme
