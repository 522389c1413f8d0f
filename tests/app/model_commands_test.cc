// Trains a tiny model in this process, and uses its checkpoint: train, eval and generate.
#include <cmath>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "mpi/self_communicator.h"
#include "src/app/command/app_context.h"
#include "src/app/data/data_command.h"
#include "src/app/model/eval_command.h"
#include "src/app/model/generate_command.h"
#include "src/app/run/train_command.h"
#include "src/base/file.h"
#include "tests/app/command_run.h"
#include "tests/support/environment_variables.h"
#include "tests/support/temp_folder.h"
#include "tests/support/without_policy.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;

CommandRun run_command(const std::vector<std::string>& words) {
  AppContext context;
  SelfCommunicator self;
  CommandRun run = run_command_line(
      [&](CommandLine& app, int& exit_code) {
        add_train_command(app, context);
        add_eval_command(app, context);
        add_generate_command(app, context);
        add_data_command(
            app, [&]() -> Communicator& { return self; }, without_policy(), exit_code);
      },
      words);
  run.code = run.code == 0 ? context.exit_code : run.code;
  return run;
}

// No launcher has started this process.
class Alone {
 public:
  Alone() {
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                             "SLURM_PROCID", "SLURM_STEP_ID", "SLURM_JOB_ID", "TRIREME_GENERATION",
                             "TRIREME_NODE_DIR", "TRIREME_MTBF_HOURS", "TRIREME_START_DEADLINE"}) {
      variables.set(name, std::nullopt);
    }
    variables.set("TRIREME_SITE_DIR", TRIREME_SOURCE_DIR "/tests/support/no_site");
  }
  EnvironmentVariables variables;
};

// Trains a tiny model for two steps, once for all tests, on a dataset of 12 samples of 16 tokens.
// The tests evaluate it and generate with it.
class ModelCommands : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempFolder>();
    const Alone alone;
    std::ofstream text(path("text.txt"));
    for (int i = 0; i < 192; ++i) {  // the end of the document follows
      text << static_cast<char>('a' + i % 26);
    }
    text.close();
    ASSERT_EQ(run_command({"data", "pack", path("text.txt"), "--out", path("data")}).code, 0);
    std::ofstream(path("run.yaml"))
        << "model: {family: gpt2, layers: 2, hidden: 16, heads: 2, vocab: 257, context: 16}\n"
           "data: {train: " +
               path("data") +
               "}\n"
               "train: {steps: 2, global_batch: 2, precision: fp32, threads: 1, log_every: 1}\n"
               "optimizer: {lr: 1e-6, schedule: {warmup: 0}}\n"
               "run: {dir: " +
               path("run") + "}\n";
    first_ = train();
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static std::string path(const std::string& name) { return (folder_->path() / name).string(); }
  static CommandRun train(std::vector<std::string> words = {}) {
    words.insert(words.begin(), {"train", path("run.yaml")});
    return run_command(words);
  }
  static CommandRun eval(std::vector<std::string> words = {}) {
    words.insert(words.begin(),
                 {"eval", "--checkpoint", path("run/checkpoints"), "--data", path("data")});
    return run_command(words);
  }
  static CommandRun generate(std::vector<std::string> words = {}) {
    words.insert(words.begin(), {"generate", "--checkpoint", path("run/checkpoints")});
    return run_command(words);
  }
  // Returns the generated texts as JSON.
  static std::vector<json> samples(std::vector<std::string> words) {
    words.emplace_back("--json");
    const CommandRun run = generate(words);
    EXPECT_EQ(run.code, 0) << run.err;
    std::vector<json> all;
    std::istringstream lines(run.out);
    for (std::string line; std::getline(lines, line);) {
      all.push_back(json::parse(line));
    }
    return all;
  }

  static std::unique_ptr<TempFolder> folder_;
  static CommandRun first_;
  const Alone alone_;
};
std::unique_ptr<TempFolder> ModelCommands::folder_;
CommandRun ModelCommands::first_;

TEST_F(ModelCommands, EvalEndsWith3IfTheLossIsNotFinite) {
  const CommandRun trained =
      train({"optimizer.lr=1e30", "train.steps=1", "run.dir=" + path("diverged")});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const CommandRun run = run_command(
      {"eval", "--checkpoint", path("diverged/checkpoints"), "--data", path("data"), "--json"});
  EXPECT_EQ(run.code, 3) << run.err;
  EXPECT_THAT(run.err, HasSubstr("is not finite"));
  EXPECT_TRUE(json::parse(run.out).at("loss").is_null()) << run.out;
}

TEST_F(ModelCommands, ARunLeavesItsFiles) {
  EXPECT_EQ(first_.code, 0) << first_.err;
  for (const char* name : {"run/DONE", "run/config.yaml", "run/checkpoints/step-00000002",
                           "run/logs/rank-00000.jsonl"}) {
    EXPECT_TRUE(fs::exists(path(name))) << name;
  }
  EXPECT_EQ(json::parse(read_file(path("run/DONE"))).at("step"), 2);
  std::istringstream lines(read_file(path("run/metrics.jsonl")));
  int steps = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(json::parse(line).at("step"), ++steps);
  }
  EXPECT_EQ(steps, 2);
}

TEST_F(ModelCommands, AFinishedRunSaysHowToTrainTwiceAsLong) {
  write_file_durably(path("run/exit_reason.json"), "{}");
  const CommandRun again = train();
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.out, AllOf(testing::StartsWith(path("run") + ": finished, step 2 of 2.\n"),
                               HasSubstr("train.steps=4 optimizer.schedule.steps=4 "
                                         "checkpoint.allow_change=optimizer.schedule.steps\n")));
  EXPECT_FALSE(fs::exists(path("run/exit_reason.json")));
}

TEST_F(ModelCommands, TrainingGoesOnWhereMoreStepsAreAskedFor) {
  fs::copy(path("run"), path("longer"), fs::copy_options::recursive);
  const CommandRun longer =
      train({"run.dir=" + path("longer"), "train.steps=3", "optimizer.schedule.steps=3",
             "checkpoint.allow_change=optimizer.schedule.steps"});
  EXPECT_EQ(longer.code, 0) << longer.err;
  EXPECT_EQ(json::parse(read_file(path("longer/DONE"))).at("step"), 3);
  // Without the checkpoint that DONE names, the run is not finished.
  fs::remove_all(path("longer/checkpoints"));
  const CommandRun anew = train({"run.dir=" + path("longer")});
  EXPECT_EQ(anew.code, 0) << anew.err;
  EXPECT_TRUE(fs::exists(path("longer/checkpoints/step-00000002")));
  EXPECT_EQ(json::parse(read_file(path("longer/DONE"))).at("step"), 2);
}

TEST_F(ModelCommands, VariablesOfALauncherAreCheckedFirst) {
  const auto with = [](const char* name, const char* value, const std::string& words) {
    Alone alone;
    alone.variables.set(name, value);
    const CommandRun run = run_command({"train", path("none.yaml")});
    EXPECT_THAT(run.err, HasSubstr(words)) << name << "=" << value;
    return run.code;
  };
  for (const char* wrong : {"0", "-1", "x", "1x", " 1", "2147483648"}) {
    EXPECT_EQ(with("TRIREME_GENERATION", wrong, std::string("TRIREME_GENERATION is '") + wrong), 2);
  }
  for (const char* right : {"", "1", "2147483647"}) {
    EXPECT_EQ(with("TRIREME_GENERATION", right, "none.yaml"), 66);
  }
  EXPECT_EQ(with("TRIREME_NODE_DIR", "/dev/null/x", "TRIREME_NODE_DIR is '/dev/null/x', which"), 2);
  EXPECT_EQ(with("TRIREME_NODE_DIR", "", "none.yaml"), 66);
}

TEST_F(ModelCommands, TheTimeBetweenFailuresIsANumberOfHours) {
  for (const char* wrong : {"0", "-1", "x", "2h", "inf", "nan"}) {
    Alone alone;
    alone.variables.set("TRIREME_MTBF_HOURS", wrong);
    const CommandRun run = train({"run.dir=" + path("mtbf")});
    EXPECT_EQ(run.code, 2);
    EXPECT_THAT(run.err, HasSubstr(std::string("TRIREME_MTBF_HOURS is '") + wrong + "'"));
  }
  EXPECT_FALSE(fs::exists(path("mtbf/config.yaml")));
}

TEST_F(ModelCommands, AReplayNeedsAStep) {
  for (const char* wrong : {"0", "-1", "x"}) {
    EXPECT_EQ(train({"--replay", wrong}).code, 2) << wrong;
  }
  EXPECT_EQ(run_command({"train"}).code, 2);
}

// The weights are nearly those of the initialization, so every byte is about equally likely.
TEST_F(ModelCommands, EvalComputesLossBitsAndPerplexity) {
  const json all = json::parse(eval({"--json"}).out);
  EXPECT_EQ(all["step"], 2);
  EXPECT_EQ(all["samples"], 12);
  EXPECT_EQ(all["tokens"], 12 * 16);
  const double loss = all["loss"];
  EXPECT_NEAR(loss, std::log(257), 0.1);
  EXPECT_NEAR(all["bits_per_token"], std::log2(std::exp(loss)), 1e-9);
  EXPECT_NEAR(all["perplexity"], std::exp(loss), 1e-9);
  const CommandRun text = eval();
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_EQ(text.out,
            fmt::format("step 2: loss {:.6f} nats per token ({:.4f} bits), perplexity {:.4f}, over "
                        "12 samples of 16 tokens\n",
                        loss, loss / std::log(2.0), std::exp(loss)));
}

TEST_F(ModelCommands, EvalTakesTheSamplesThatAreAskedFor) {
  const json few = json::parse(eval({"--json", "--samples", "3", "--sequence", "8"}).out);
  EXPECT_EQ(few["samples"], 3);
  EXPECT_EQ(few["tokens"], 24);
  EXPECT_THAT(eval({"--samples", "1"}).out, HasSubstr("over 1 sample of 16 tokens\n"));
  EXPECT_EQ(json::parse(eval({"--json", "--samples", "99"}).out)["samples"], 12);
  const double one = json::parse(eval({"--json", "--micro-batch", "1"}).out)["loss"];
  const double many = json::parse(eval({"--json", "--micro-batch", "5"}).out)["loss"];
  EXPECT_NEAR(one, many, 1e-5);
}

TEST_F(ModelCommands, EvalRefusesWhatItCannotEvaluate) {
  EXPECT_EQ(eval({"--sequence", "16"}).code, 0);
  const CommandRun beyond = eval({"--sequence", "17"});
  EXPECT_EQ(beyond.code, 2);
  EXPECT_THAT(beyond.err, HasSubstr("--sequence 17: the model's context is 16 tokens"));
  const std::vector<std::vector<std::string>> wrong = {{"--sequence", "0"},
                                                       {"--micro-batch", "0"},
                                                       {"--samples", "0"},
                                                       {"--precision", "fp8"},
                                                       {"--ema"}};
  for (const auto& words : wrong) {
    EXPECT_EQ(eval(words).code, 2) << words.front();
  }
  EXPECT_EQ(run_command({"eval", "--checkpoint", path("none"), "--data", path("data")}).code, 66);
  EXPECT_EQ(
      run_command({"eval", "--checkpoint", path("run/checkpoints"), "--data", path("none")}).code,
      66);
}

TEST_F(ModelCommands, GenerateDrawsAsManyTokensAsAskedFor) {
  EXPECT_EQ(generate({"--tokens", "0", "--prompt", "ab"}).code, 2);
  const std::vector<json> drawn = samples({"--ids", "--prompt", "97 98", "--tokens", "5"});
  ASSERT_EQ(drawn.size(), 1U);
  EXPECT_EQ(drawn[0]["schema"], 1);
  EXPECT_EQ(drawn[0]["prompt"], "97 98");
  EXPECT_EQ(drawn[0]["prompt_number"], 1);
  EXPECT_EQ(drawn[0]["sample"], 1);
  EXPECT_EQ(drawn[0]["tokens"], 5);
  EXPECT_EQ(drawn[0]["finish"], "length");
  // The prompt and the new tokens exceed the context of 16.
  const json many = samples({"--ids", "--prompt", "97", "--tokens", "40", "--top-k", "1"})[0];
  EXPECT_EQ(many["tokens"], 40);
}

TEST_F(ModelCommands, GenerateIsAFunctionOfTheSeed) {
  const std::vector<std::string> base = {"--ids", "--prompt", "97", "--tokens", "8"};
  const auto text = [&](std::vector<std::string> more) {
    more.insert(more.begin(), base.begin(), base.end());
    return samples(more);
  };
  const std::vector<json> two = text({"--seed", "7", "--samples", "2"});
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[0]["seed"], 7);
  EXPECT_NE(two[1]["seed"], two[0]["seed"]);
  EXPECT_NE(two[1]["text"], two[0]["text"]);
  for (const json& sample : two) {
    const json alone = text({"--seed", sample["seed"].dump()})[0];
    EXPECT_EQ(alone["text"], sample["text"]);
  }
  // Greedy decoding takes the most likely token, whatever the seed.
  const json greedy = text({"--temperature", "0"})[0];
  for (const char* seed : {"1", "2"}) {
    EXPECT_EQ(text({"--top-k", "1", "--seed", seed})[0]["text"], greedy["text"]);
    EXPECT_EQ(text({"--top-p", "1e-9", "--seed", seed})[0]["text"], greedy["text"]);
  }
}

TEST_F(ModelCommands, SeveralTextsHaveHeadings) {
  std::ofstream(path("prompts.txt")) << "97\n98\n";
  const std::string one = generate({"--ids", "--tokens", "1", "--prompt", "97"}).out;
  EXPECT_THAT(one, MatchesRegex("97[ 0-9]*\n"));
  const std::vector<std::string> words = {
      "--ids", "--tokens", "1", "--prompts", path("prompts.txt"), "--samples", "2"};
  EXPECT_THAT(generate(words).out,
              MatchesRegex("--- prompt 1 of 2, sample 1 of 2 ---\n97[ 0-9]*\n"
                           "--- prompt 1 of 2, sample 2 of 2 ---\n97[ 0-9]*\n"
                           "--- prompt 2 of 2, sample 1 of 2 ---\n98[ 0-9]*\n"
                           "--- prompt 2 of 2, sample 2 of 2 ---\n98[ 0-9]*\n"));
}

// These mistakes are reported before the checkpoint is read.
TEST_F(ModelCommands, GenerateChecksItsOptionsFirst) {
  const auto code = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"generate", "--checkpoint", path("none")});
    return run_command(words).code;
  };
  const std::vector<std::vector<std::string>> wrong = {
      {"--temperature", "-1"}, {"--temperature", "inf"},   {"--top-k", "-1"},
      {"--top-p", "0"},        {"--top-p", "1.5"},         {"--samples", "0"},
      {"--tokens", "-1"},      {"--threads", "0"},         {"--stop", ""},
      {"--precision", "fp8"},  {"--tokens", "2147483648"}, {"--prompt", "a", "--prompts", "b"}};
  for (const auto& words : wrong) {
    EXPECT_EQ(code(words), 2) << words.front() << " " << words.back();
  }
  EXPECT_EQ(code({"--prompts", path("none.txt")}), 66);
  EXPECT_EQ(code({}), 66);
}

TEST_F(ModelCommands, OnlyTheFirstOfSeveralProcessesGenerates) {
  Alone second;
  second.variables.set("OMPI_COMM_WORLD_RANK", "1");
  const CommandRun run = run_command({"generate", "--checkpoint", path("none")});
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.out + run.err, "");
}

}  // namespace
}  // namespace trireme
