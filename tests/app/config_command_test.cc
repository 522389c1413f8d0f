#include "src/app/run/config_command.h"

#include <fstream>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/app/run/fault_sites.h"
#include "src/base/fault_plan.h"
#include "tests/app/command_run.h"
#include "tests/support/environment_variables.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ConfigCommand : public testing::Test {
 protected:
  ConfigCommand() {
    variables_.set("TRIREME_SITE_DIR", site_.path().string());
    write(
        "model: {preset: tiny-gpt2, context: 128}\n"
        "data: {train: /data/train}\n"
        "train:\n"
        "  steps: 3000\n"
        "  global_batch: 8\n"
        "  micro_batch: 4\n"
        "run: {dir: runs/first}\n");
  }
  void write(const std::string& text) const { std::ofstream(file_) << text; }
  CommandRun config(std::vector<std::string> words) {
    words.insert(words.begin(), "config");
    return run_command_line([this](CommandLine& app, int&) { add_config_command(app, context_); },
                            words);
  }
  CommandRun show(std::vector<std::string> words = {}) {
    words.insert(words.begin(), {"show", file_.string()});
    return config(words);
  }
  // Returns the entries of `config show --json` by key.
  std::map<std::string, json> keys(std::vector<std::string> words = {}) {
    words.emplace_back("--json");
    std::map<std::string, json> found;
    const json shown = json::parse(show(words).out);
    EXPECT_EQ(shown.at("schema"), 2);
    for (const json& each : shown.at("keys")) {
      found[each.at("key")] = each;
    }
    return found;
  }

  EnvironmentVariables variables_;
  TempFolder folder_;
  TempFolder site_;
  const std::filesystem::path file_ = folder_.path() / "run.yaml";
  AppContext context_;
};

// N = (257 + 128) 128 + 4 (12 128^2 + 13 128) + 2 128 = 842,624 parameters, and
// 6 N + 6 x 4 x 128 x 128 = 5,448,960 FLOPs per token.
TEST_F(ConfigCommand, ShowEndsWithTheSizeOfTheRun) {
  const CommandRun run = show();
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, testing::EndsWith("# 842.6k parameters; 1024 tokens per step in 2 "
                                         "micro-batches; 5.449M FLOPs per token\n"));
  EXPECT_THAT(run.out, Not(HasSubstr("batch ramp")));
  EXPECT_THAT(show({"train.global_batch=1", "train.micro_batch=1", "data.sequence=1"}).out,
              HasSubstr("; 1 token per step in 1 micro-batch; "));
  EXPECT_THAT(
      show({"train.batch_ramp.from=4", "train.batch_ramp.by=4", "train.batch_ramp.every=100"}).out,
      HasSubstr("\n# batch ramp: 4 sequences at first, 8 from step 101 on\n"));
}

TEST_F(ConfigCommand, ShowSaysWhereEachValueComesFrom) {
  std::ofstream(site_.path() / "site.yaml") << "train: {log_every: 7, eval_every: 7}\n";
  variables_.set("TRIREME_TRAIN__EVAL_EVERY", "8");
  variables_.set("TRIREME_TRAIN__SEED", "5");
  std::map<std::string, json> found = keys({"train.seed=6"});
  const std::map<std::string, std::pair<json, std::string>> wanted = {
      {"train.seed", {6, "command line"}},
      {"train.eval_every", {8, "TRIREME_TRAIN__EVAL_EVERY"}},
      {"train.steps", {3000, file_.string() + ":4"}},
      {"train.log_every", {7, (site_.path() / "site.yaml").string() + ":1"}},
      {"model.layers", {4, "preset"}},
      {"model.context", {128, file_.string() + ":1"}},
      {"optimizer.name", {"adamw", "default"}}};
  for (const auto& [key, expected] : wanted) {
    EXPECT_EQ(found[key]["value"], expected.first) << key;
    EXPECT_THAT(found[key]["origin"].get<std::string>(), HasSubstr(expected.second)) << key;
    EXPECT_NE(found[key]["doc"], "") << key;
    EXPECT_NE(found[key]["allowed"], "") << key;
  }
}

TEST_F(ConfigCommand, ShowPrintsJsonOfTheKindThatAKeyTakes) {
  std::map<std::string, json> found = keys(
      {"run.name=7", "optimizer.lr=3e-4", "optimizer.betas=[0.9, 1e-1]", "checkpoint.every=5"});
  EXPECT_EQ(found["run.name"]["value"], json("7"));
  EXPECT_EQ(found["optimizer.lr"]["value"], json(3e-4));
  EXPECT_EQ(found["optimizer.betas"]["value"], json({0.9, 0.1}));
  EXPECT_EQ(found["checkpoint.every"]["value"], json(5));
  EXPECT_EQ(found["checkpoint.resume"]["value"], json("auto"));
  EXPECT_EQ(found["checkpoint.force_lock"]["value"], json(false));
  EXPECT_EQ(found["checkpoint.allow_change"]["value"], json::array());
}

TEST_F(ConfigCommand, ShowRefusesWhatARunWouldRefuse) {
  EXPECT_EQ(config({"show"}).code, 2);
  EXPECT_EQ(config({}).code, 2);
  EXPECT_EQ(config({"show", (folder_.path() / "none.yaml").string()}).code, 66);
  const CommandRun wrong = show({"train.stepz=5"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, AllOf(HasSubstr("train.stepz"), HasSubstr("command line")));
  EXPECT_EQ(wrong.out, "");
  EXPECT_EQ(show({"train.micro_batch=3"}).code, 2);
}

// The counts are those that the models' publishers state.
TEST_F(ConfigCommand, PresetsHaveThePublishedSizes) {
  const std::map<std::string, std::int64_t> published = {
      {"gpt2-124m", 124439808},   {"gpt2-355m", 354823168},   {"gpt2-774m", 774030080},
      {"gpt2-1558m", 1557611200}, {"llama-1b", 1235814400},   {"llama-3b", 3212749824},
      {"llama-8b", 8030261248},   {"llama-70b", 70553706496}, {"llama-405b", 405853388800}};
  std::map<std::string, json> presets;
  const json listed = json::parse(config({"presets", "--json"}).out);
  for (const json& each : listed.at("presets")) {
    presets[each.at("name")] = each;
    EXPECT_NE(each.at("description"), "") << each;
    EXPECT_EQ(each.at("description").get<std::string>().find('#'), std::string::npos) << each;
  }
  for (const auto& [name, parameters] : published) {
    EXPECT_EQ(presets[name]["parameters"], parameters) << name;
  }
  const json& gpt2 = presets["gpt2-124m"];
  EXPECT_EQ(gpt2["family"], "gpt2");
  EXPECT_EQ(gpt2["layers"], 12);
  EXPECT_EQ(gpt2["hidden"], 768);
  EXPECT_EQ(gpt2["context"], 1024);
  EXPECT_EQ(gpt2["vocab"], 50257);
  const std::string table = config({"presets"}).out;
  EXPECT_THAT(table, AllOf(HasSubstr("preset         family parameters layers hidden  context    "
                                     "vocab\n"),
                           HasSubstr("gpt2-124m      gpt2       124.4M     12    768     1024    "
                                     "50257\n")));
}

// Each site and action that is listed is one that a plan may name.
TEST_F(ConfigCommand, FaultsListsWhatAPlanMayName) {
  const json listed = json::parse(config({"faults", "--json"}).out);
  const std::string table = "\n" + config({"faults"}).out;
  std::set<std::string> kinds;
  ASSERT_GT(listed["sites"].size(), 10U);
  for (const json& site : listed["sites"]) {
    const auto name = site["site"].get<std::string>();
    kinds.insert(site["kind"]);
    EXPECT_NO_THROW((void)parse_fault_plan(name + ":0:1:kill", fault_sites())) << name;
    EXPECT_NE(site["where"], "") << name;
    EXPECT_THAT(table, HasSubstr("\n" + name + " ")) << name;
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"call", "data", "numbers", "point"}));
  for (const json& action : listed["actions"]) {
    const auto name = action.get<std::string>();
    EXPECT_THAT(table.substr(table.find("action: ")), HasSubstr(name));
    const std::size_t equals = name.find('=');
    if (equals == std::string::npos && name != "corrupt" && name != "short" && name != "nan") {
      EXPECT_NO_THROW((void)parse_fault_plan("step.forward:0:1:" + name, fault_sites())) << name;
    }
  }
}

}  // namespace
}  // namespace trireme
