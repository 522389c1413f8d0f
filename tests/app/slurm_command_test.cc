// Submits to a program `sbatch` of the test's own, which records what it is given.
#include "src/app/site/slurm_command.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/file.h"
#include "tests/app/command_run.h"
#include "tests/support/environment_variables.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class SlurmCommand : public testing::Test {
 protected:
  SlurmCommand() {
    fs::create_directory(temporary_);
    variables_.set("TMPDIR", temporary_.string());
    variables_.set("TRIREME_SITE_DIR", TRIREME_SOURCE_DIR "/tests/support/no_site");
    variables_.set("PATH", folder_.path().string() + ":/usr/bin:/bin");
    std::ofstream(config_) << "model: {preset: tiny-gpt2}\n"
                              "data: {train: /nowhere}\n"
                              "train: {steps: 5, global_batch: 24}\n"
                              "run: {dir: " +
                                  run_.string() + "}\n";
    profile("");
  }
  // Writes a profile for one rank per node, with more keys in its section `slurm`.
  void profile(const std::string& keys) const {
    std::ofstream(cluster_) << "slurm:\n  time: \"60\"\n  max_restarts: 3\n" + keys +
                                   "node: {ranks: 1, cpus_per_rank: 1}\n";
  }
  // The N-th call appends its arguments to `calls`, keeps the script and prints the job id 100 + N.
  void make_sbatch(const std::string& more = "") const {
    const fs::path sbatch = folder_.path() / "sbatch";
    std::ofstream(sbatch) << "#!/bin/sh\ncd " + folder_.path().string() +
                                 "\n"
                                 "echo \"$@\" >> calls\n"
                                 "for script; do :; done\n"
                                 "cp \"$script\" script\n" +
                                 more +
                                 "n=$(wc -l < calls)\n"
                                 "echo \"$((100 + n));cluster\"\n";
    fs::permissions(sbatch, fs::perms::owner_all);
  }
  CommandRun slurm(const std::string& command, std::vector<std::string> words = {}) const {
    words.insert(words.begin(),
                 {"slurm", command, config_.string(), "--cluster", cluster_.string()});
    return run_command_line([](CommandLine& app, int&) { add_slurm_command(app); }, words);
  }
  std::string rendered(const std::vector<std::string>& words = {}) const {
    const CommandRun run = slurm("render", words);
    EXPECT_EQ(run.code, 0) << run.err;
    return run.out;
  }
  // Returns the calls of sbatch without the names of the script files.
  std::string calls() const {
    std::string text = read_file(folder_.path() / "calls");
    for (std::size_t at = text.find(temporary_.string()); at != std::string::npos;
         at = text.find(temporary_.string())) {
      text.replace(at, text.find('\n', at) - at, "SCRIPT");
    }
    return text;
  }

  EnvironmentVariables variables_;
  TempFolder folder_;
  const fs::path config_ = folder_.path() / "pretrain.yaml";
  const fs::path cluster_ = folder_.path() / "site.yaml";
  const fs::path temporary_ = folder_.path() / "tmp";
  const fs::path run_ = folder_.path() / "run";
};

TEST_F(SlurmCommand, SubmitPrintsTheJobIdAndLeavesNoScript) {
  make_sbatch();
  const CommandRun run = slurm("submit", {"--nodes", "2"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out, "101\n");
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(calls(), "--parsable SCRIPT\n");
  EXPECT_TRUE(fs::is_empty(temporary_));
  const std::string script = read_file(folder_.path() / "script");
  EXPECT_THAT(script, HasSubstr("#SBATCH --nodes=2\n"));
  EXPECT_EQ(script, rendered({"--nodes", "2"}));
}

TEST_F(SlurmCommand, EachJobOfAChainWaitsForTheOneBefore) {
  make_sbatch();
  CommandRun run = slurm("submit", {"--chain", "3"});
  EXPECT_EQ(run.out, "101\n102\n103\n");
  EXPECT_EQ(calls(),
            "--parsable SCRIPT\n"
            "--parsable --dependency=afterany:101 SCRIPT\n"
            "--parsable --dependency=afterany:102 SCRIPT\n");
  EXPECT_THAT(read_file(folder_.path() / "script"), HasSubstr("#SBATCH --no-requeue\n"));
  fs::remove(folder_.path() / "calls");
  run = slurm("submit", {"--chain", "2", "--after", "55"});
  EXPECT_EQ(calls(),
            "--parsable --dependency=afterany:55 SCRIPT\n"
            "--parsable --dependency=afterany:101 SCRIPT\n");
  fs::remove(folder_.path() / "calls");
  EXPECT_EQ(slurm("submit", {"--after", "5 --hold"}).code, 2);
  EXPECT_FALSE(fs::exists(folder_.path() / "calls"));
}

TEST_F(SlurmCommand, ASingleJobOfAChainIsPointedOut) {
  make_sbatch();
  profile("  requeue: chain\n");
  EXPECT_THAT(slurm("submit").err, AllOf(HasSubstr("submitting a single job although"),
                                         HasSubstr(cluster_.string()), HasSubstr("--chain N")));
  EXPECT_EQ(slurm("submit", {"--chain", "2"}).err, "");
  EXPECT_EQ(slurm("submit", {"--after", "7"}).err, "");
}

TEST_F(SlurmCommand, ATestPrintsWhatSlurmSaysAndNoId) {
  make_sbatch("echo 'sbatch: Job 7 to start at noon' >&2\n");
  const CommandRun run = slurm("submit", {"--test-only", "--chain", "2"});
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.out, "sbatch: Job 7 to start at noon\nsbatch: Job 7 to start at noon\n");
  EXPECT_EQ(calls(), "--parsable --test-only SCRIPT\n--parsable --test-only SCRIPT\n");
}

TEST_F(SlurmCommand, ARefusedJobEndsTheChain) {
  make_sbatch("if [ $(wc -l < calls) = 2 ]; then echo 'invalid partition' >&2; exit 1; fi\n");
  const CommandRun run = slurm("submit", {"--chain", "3"});
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.out, "101\n");
  EXPECT_THAT(run.err, AllOf(HasSubstr("sbatch: exit code 1: invalid partition"),
                             HasSubstr("No job was submitted"), HasSubstr("--cluster")));
  EXPECT_TRUE(fs::is_empty(temporary_));
}

TEST_F(SlurmCommand, TheJobIsNamedAfterTheOptionTheRunOrTheFile) {
  EXPECT_THAT(rendered(), HasSubstr("#SBATCH --job-name=pretrain\n"));
  EXPECT_THAT(rendered({"run.name=big"}), HasSubstr("#SBATCH --job-name=big\n"));
  EXPECT_THAT(rendered({"run.name=big", "--job-name", "mine"}),
              HasSubstr("#SBATCH --job-name=mine\n"));
}

// The time before the end is 60 + 30 s, and twice a step and a save (slurm/render/job_script.h).
TEST_F(SlurmCommand, TimesAreGivenOrOfTheProfileOrMeasuredOrGuessed) {
  const auto signal = [this](const std::vector<std::string>& words) {
    const std::string script = rendered(words);
    const std::string key = "--signal=B:USR1@";
    return std::stoi(script.substr(script.find(key) + key.size()));
  };
  EXPECT_EQ(signal({}), 90 + 2 * (15 + 60));
  fs::create_directories(run_ / "logs");
  std::ofstream(run_ / "metrics.jsonl") << "{\"step\":1,\"step_ms\":4000}\n";
  std::ofstream(run_ / "logs/rank-00000.jsonl") << "{\"event\":\"checkpoint\",\"seconds\":7}\n";
  EXPECT_EQ(signal({}), 90 + 2 * (4 + 7));
  profile("  step_seconds: 2\n");
  EXPECT_EQ(signal({}), 90 + 2 * (2 + 7));
  profile("  step_seconds: 2\n  save_seconds: 3\n");
  EXPECT_EQ(signal({}), 90 + 2 * (2 + 3));
  EXPECT_EQ(signal({"--step-seconds", "1"}), 90 + 2 * (1 + 3));
  EXPECT_EQ(signal({"--step-seconds", "1", "--save-seconds", "0.5"}), 90 + 2 + 1);
  EXPECT_EQ(signal({"--step-seconds", "0"}), 90 + 2 * (2 + 3));
  EXPECT_EQ(slurm("render", {"--step-seconds", "-1"}).code, 2);
}

TEST_F(SlurmCommand, DamagedLinesOfTheRunAreNamedOnce) {
  fs::create_directories(run_ / "logs");
  const fs::path metrics = run_ / "metrics.jsonl";
  const fs::path log = run_ / "logs/rank-00000.jsonl";
  std::ofstream(metrics) << "{\"step\":1,\"step_ms\":4000}\nnonsense\n{\"step\":";
  std::ofstream(log) << "{\"event\":\n{\"event\":\"checkpoint\",\"seconds\":7}\n{\n";
  const std::string warnings = fmt::format(
      "trireme: {}: ignoring 1 damaged line (line 2)\n"
      "trireme: {}: ignoring 2 damaged lines (the first is line 1)\n",
      metrics.string(), log.string());
  const CommandRun run = slurm("render");
  EXPECT_EQ(run.err, warnings);
  EXPECT_THAT(run.out, HasSubstr(fmt::format("--signal=B:USR1@{}", 90 + 2 * (4 + 7))));
  make_sbatch();
  EXPECT_EQ(slurm("submit", {"--chain", "2"}).err, warnings);
}

TEST_F(SlurmCommand, AnArrayHasATaskForEachCombination) {
  const std::string script = rendered(
      {"--array", "train.seed=1,2", "--array", "optimizer.lr=1e-3,3e-4,1e-4", "--at-once", "4"});
  EXPECT_THAT(script, HasSubstr("#SBATCH --array=0-5%4\n"));
  EXPECT_THAT(script, HasSubstr("  5) arguments+=(train.seed=2 optimizer.lr=1e-4 run.dir="));
  EXPECT_THAT(rendered({"--array", "train.seed=1,2"}), HasSubstr("#SBATCH --array=0-1\n"));
  EXPECT_THAT(rendered(), Not(HasSubstr("--array=")));
  // Each task's run is checked, not only the first.
  const CommandRun folders = slurm("render", {"--array", "run.dir=a,b"});
  EXPECT_EQ(folders.code, 2);
  EXPECT_THAT(folders.err, HasSubstr("each run of an array gets a folder of its own"));
  const CommandRun wrong = slurm("render", {"--array", "parallel.dp=2,3", "--nodes", "2"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_EQ(wrong.out, "");
  const CommandRun chained = slurm("render", {"--array", "train.seed=1,2", "--chain", "2"});
  EXPECT_EQ(chained.code, 2);
  EXPECT_THAT(chained.err, HasSubstr("an array cannot be chained"));
  std::string thousand = "train.seed=0";
  for (int seed = 1; seed < 1000; ++seed) {
    thousand += fmt::format(",{}", seed);
  }
  EXPECT_EQ(slurm("render", {"--array", thousand + ",1000"}).code, 2);
}

TEST_F(SlurmCommand, TheScriptReplacesNothingThatTheRunReads) {
  const fs::path plan = folder_.path() / "plan.yaml";
  const fs::path own = run_ / "config.yaml";
  fs::create_directories(run_ / "logs");
  for (const fs::path& file : {plan, own, run_ / "logs/rank-00000.jsonl"}) {
    std::ofstream(file) << "kept";
  }
  for (const fs::path& file : {config_, cluster_, plan, own}) {
    const std::string before = read_file(file);
    const CommandRun run = slurm("render", {"plan.cluster=" + plan.string(), "-o", file.string()});
    EXPECT_EQ(run.code, 2) << file;
    EXPECT_THAT(run.err, HasSubstr("name another file")) << file;
    EXPECT_EQ(read_file(file), before);
  }
}

TEST_F(SlurmCommand, AnArrayMakesNoRunTwice) {
  const CommandRun twice =
      slurm("render", {"--array", "train.seed=1,2", "--array", "train.seed=3"});
  EXPECT_EQ(twice.code, 2);
  EXPECT_THAT(twice.err, HasSubstr("train.seed has an --array already"));
  const CommandRun hidden = slurm("render", {"--array", "train.seed=1,2", "train.seed=5"});
  EXPECT_EQ(hidden.code, 2);
  EXPECT_THAT(hidden.err, HasSubstr("train.seed=5 would have no effect"));
}

TEST_F(SlurmCommand, SparesImplyALaunch) {
  EXPECT_THAT(rendered(), Not(HasSubstr("#SBATCH --no-kill\n")));
  EXPECT_THAT(rendered({"--supervised"}), HasSubstr("#SBATCH --no-kill\n"));
  EXPECT_THAT(rendered({"--nodes", "2", "--spares", "1"}),
              AllOf(HasSubstr("#SBATCH --nodes=3\n"), HasSubstr("#SBATCH --no-kill\n")));
}

TEST_F(SlurmCommand, OptionsOutOfRangeAreRefused) {
  const std::vector<std::vector<std::string>> wrong = {
      {"--nodes", "0"},   {"--nodes", "100001"}, {"--spares", "-1"}, {"--spares", "10001"},
      {"--chain", "0"},   {"--chain", "1001"},   {"--at-once", "0"}, {"--time", "soon"},
      {"--time", "0:03"}, {"parallel.dp=2"}};
  for (const auto& words : wrong) {
    EXPECT_EQ(slurm("render", words).code, 2) << words.front() << words.back();
  }
  EXPECT_THAT(rendered({"--time", "1-00:00:00"}), HasSubstr("#SBATCH --time=1-00:00:00\n"));
}

TEST_F(SlurmCommand, RenderWritesAFile) {
  const fs::path file = folder_.path() / "job.sbatch";
  const CommandRun run = slurm("render", {"-o", file.string()});
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(read_file(file), rendered());
}

}  // namespace
}  // namespace trireme
