#include "src/app/site/doctor_command.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/train/engine/train_step.h"
#include "tests/app/command_run.h"
#include "tests/support/environment_variables.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class DoctorCommand : public testing::Test {
 protected:
  DoctorCommand() {
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "SLURM_STEP_ID", "SLURM_PROCID",
                             "SLURM_JOB_ID", "SLURM_STEP_NUM_TASKS"}) {
      variables_.set(name, std::nullopt);
    }
    variables_.set("TRIREME_SITE_DIR", TRIREME_SOURCE_DIR "/tests/support/no_site");
    variables_.set("OMPI_ALLOW_RUN_AS_ROOT", "1");
    variables_.set("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    std::ofstream(config_) << "model: {preset: tiny-gpt2}\n"
                              "data: {train: " +
                                  (folder_.path() / "none").string() +
                                  "}\n"
                                  "train: {steps: 5, global_batch: 24, threads: 1}\n"
                                  "numerics: {self_check: false}\n"
                                  "run: {dir: " +
                                  (folder_.path() / "run").string() + "}\n";
  }
  CommandRun doctor(std::vector<std::string> words = {}) {
    words.insert(words.begin(), {"doctor", config_.string()});
    AppContext context;
    CommandRun run =
        run_command_line([&](CommandLine& app, int&) { add_doctor_command(app, context); }, words);
    run.code = run.code == 0 ? context.exit_code : run.code;
    return run;
  }

  EnvironmentVariables variables_;
  TempFolder folder_;
  const std::filesystem::path config_ = folder_.path() / "run.yaml";
};

// The dataset does not exist. Other findings depend on the machine.
TEST_F(DoctorCommand, TheExitCodeIsThatOfTheLaunch) {
  const CommandRun text = doctor();
  EXPECT_EQ(text.code, 66) << text.err;
  EXPECT_THAT(
      text.out,
      AllOf(testing::StartsWith("program  computes on CPUs only (built without CUDA)\nerror    "),
            HasSubstr(": data.train: "), HasSubstr("\n         see `trireme data verify "),
            HasSubstr("doctor: 1 rank: 1 error, "),
            HasSubstr(": this launch would end with exit code 66\n")));
  const CommandRun machine = doctor({"--json"});
  EXPECT_EQ(machine.code, 66);
  const json report = json::parse(machine.out);
  EXPECT_EQ(report["schema"], 1);
  EXPECT_EQ(report["ranks"], 1);
  EXPECT_EQ(report["exit_code"], 66);
  EXPECT_EQ(report["findings"][0]["severity"], "error");
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "run"));
}

// The checks of kernels have the model's size, and would take 16 GB here.
TEST_F(DoctorCommand, KernelsAreNotCheckedWithAModelThatDoesNotFit) {
  const std::int64_t before = peak_resident_bytes();
  const CommandRun run = doctor({"model.vocab=2147483647"});
  EXPECT_THAT(run.out, HasSubstr("makes it fit"));
  EXPECT_LT(peak_resident_bytes() - before, std::int64_t{1} << 30);
}

TEST_F(DoctorCommand, ThePlannedLaunchIsNamed) {
  EXPECT_THAT(doctor({"--ranks", "6"}).out,
              HasSubstr("doctor: 1 rank, checking a planned launch of 6 ranks: "));
  EXPECT_THAT(doctor({"--ranks", "1"}).out, HasSubstr("doctor: 1 rank: "));
  const CommandRun odd = doctor({"--ranks", "6", "parallel.dp=4"});
  EXPECT_THAT(odd.out, AllOf(HasSubstr("error    all ranks: the number of ranks, 6,"),
                             HasSubstr("2 errors, ")));
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"--ranks", "0"},
                                                {"--ranks", "10000001"},
                                                {"--ranks-per-node", "0"},
                                                {"--ranks-per-node", "4097"}}) {
    EXPECT_EQ(doctor(wrong).code, 2) << wrong.back();
  }
}

TEST_F(DoctorCommand, AWrongConfigurationIsTheOnlyFinding) {
  const CommandRun run = doctor({"--json", "train.stepz=1"});
  EXPECT_EQ(run.code, 2);
  const json found = json::parse(run.out)["findings"];
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0]["what"].get<std::string>(), HasSubstr("train.stepz"));
}

TEST_F(DoctorCommand, OfTasksThatMpiDoesNotConnectOnlyTheFirstSpeaks) {
  variables_.set("SLURM_STEP_ID", "0");
  variables_.set("SLURM_STEP_NUM_TASKS", "4");
  variables_.set("SLURM_PROCID", "0");
  const CommandRun first = doctor();
  EXPECT_EQ(first.code, 2);
  EXPECT_THAT(first.out, HasSubstr("srun --mpi=pmix"));
  variables_.set("SLURM_PROCID", "3");
  const CommandRun other = doctor();
  EXPECT_EQ(other.code, 2);
  EXPECT_EQ(other.out, "");
}

}  // namespace
}  // namespace trireme
