// Tests which jobs `slurm render` and `slurm submit` refuse because their GPUs do not fit the run.
#include "src/app/site/job_gpus.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/app/site/slurm_command.h"
#include "tests/app/command_run.h"
#include "tests/support/environment_variables.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class JobGpus : public testing::Test {
 protected:
  JobGpus() {
    variables_.set("TRIREME_SITE_DIR", TRIREME_SOURCE_DIR "/tests/support/no_site");
    std::ofstream(config_) << "model: {preset: tiny-gpt2}\n"
                              "data: {train: /nowhere}\n"
                              "train: {steps: 5, global_batch: 8}\n"
                              "run: {dir: " +
                                  (folder_.path() / "run").string() + "}\n";
  }
  // Runs `slurm COMMAND` with a profile that has these keys.
  CommandRun slurm(const std::string& profile, const std::vector<std::string>& keys,
                   const std::string& command = "render") const {
    std::ofstream(cluster_) << profile << "\n";
    std::vector<std::string> words = {"slurm",     command,           config_.string(),
                                      "--cluster", cluster_.string(), "train.micro_batch=1"};
    words.insert(words.end(), keys.begin(), keys.end());
    return run_command_line([](CommandLine& app, int&) { add_slurm_command(app); }, words);
  }
  int code(const std::string& profile, const std::vector<std::string>& keys) const {
    return slurm(profile, keys).code;
  }

  EnvironmentVariables variables_;
  TempFolder folder_;
  const std::filesystem::path config_ = folder_.path() / "pretrain.yaml";
  const std::filesystem::path cluster_ = folder_.path() / "site.yaml";
};

constexpr const char* kCuda = "train.device=cuda";
constexpr const char* kShare = "train.share_device=true";

TEST_F(JobGpus, ManyRanksPerGpuNeedPermission) {
  const std::string profile = "node: {ranks: 8, gpus: 4}";
  for (const std::string command : {"render", "submit"}) {
    const CommandRun run = slurm(profile, {kCuda}, command);
    EXPECT_EQ(run.code, 2);
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err,
                AllOf(HasSubstr(cluster_.string()), HasSubstr("node.ranks is 8, but node.gpus 4"),
                      HasSubstr("train.share_device=true")));
  }
  EXPECT_EQ(code(profile, {"train.device=auto"}), 2);
  EXPECT_EQ(code(profile, {kCuda, kShare}), 0);
  EXPECT_EQ(code(profile, {"train.device=cpu"}), 0);
  EXPECT_EQ(code("node: {ranks: 4, gpus: 4}", {kCuda}), 0);
}

TEST_F(JobGpus, ARunOnGpusNeedsGpus) {
  const CommandRun run = slurm("node: {ranks: 8, gpus: 0}", {kCuda});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("node.gpus is 0"), HasSubstr("train.device=cpu")));
  EXPECT_EQ(code("node: {ranks: 8, gpus: 0}", {kCuda, kShare}), 2);
  EXPECT_EQ(code("node: {ranks: 8, gpus: 0}", {"train.device=auto"}), 0);
  EXPECT_EQ(code("slurm: {options: [--gres=gpu:8]}\nnode: {ranks: 8}", {kCuda}), 0);
}

TEST_F(JobGpus, SlicesAndMpsNeedPermission) {
  for (const std::string profile : {"node: {ranks: 4, gpus: 4, gpu_type: 1g.10gb}",
                                    "node: {ranks: 4, gpus: 4, gpu_type: nvidia_a100_3g.20gb}",
                                    "node: {gpus: 1, gpu_request: mps, mps_shares: 50}"}) {
    const CommandRun run = slurm(profile, {kCuda});
    EXPECT_EQ(run.code, 2) << profile;
    EXPECT_THAT(run.err, HasSubstr("train.share_device=true")) << profile;
    EXPECT_EQ(code(profile, {kCuda, kShare}), 0) << profile;
  }
}

TEST_F(JobGpus, EachRunOfAnArrayIsCheckedAndNothingElse) {
  const std::string profile = "node: {ranks: 8, gpus: 4}";
  EXPECT_EQ(code(profile, {kCuda, "--array", "train.share_device=true"}), 0);
  EXPECT_EQ(code(profile, {kCuda, "--array", "train.share_device=true,false"}), 2);
}

TEST(MigType, IsRecognized) {
  for (const char* slice : {"1g.5gb", "1g.10gb", "7g.80gb", "a100_1g.5gb", "1g.10gb+me"}) {
    EXPECT_TRUE(is_mig_type(slice)) << slice;
  }
  for (const char* whole : {"", "a100", "h100_80gb", "gb200", "nvidia_h100_80gb_hbm3"}) {
    EXPECT_FALSE(is_mig_type(whole)) << whole;
  }
}

}  // namespace
}  // namespace trireme
