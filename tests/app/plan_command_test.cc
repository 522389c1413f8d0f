#include "src/app/plan/plan_command.h"

#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/report/plan_section.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::filesystem::path kTop = TRIREME_SOURCE_DIR;

class PlanCommand : public ::testing::Test {
 protected:
  PlanCommand() : config_((folder_.path() / "run.yaml").string()) {
    write_named_file(config_,
                     "model: {preset: llama-1b}\n"
                     "data: {train: data, sequence: 2048}\n"
                     "train: {steps: 1000, global_batch: 256, micro_batch: 1}\n"
                     "run: {dir: run}\n");
  }

  std::string plan(std::vector<std::string> arguments) {
    CommandLine app("", "trireme");
    add_plan_command(app, context_);
    arguments.insert(arguments.begin(), "plan");
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    try {
      app.parse(arguments);
    } catch (...) {
      (void)testing::internal::GetCapturedStdout();
      (void)testing::internal::GetCapturedStderr();
      throw;
    }
    errors_ = testing::internal::GetCapturedStderr();
    return testing::internal::GetCapturedStdout();
  }

  const TempFolder folder_;
  const std::string config_;
  std::string errors_;
  AppContext context_;
};

TEST_F(PlanCommand, DrawsAPageOfPictures) {
  const std::string file = (folder_.path() / "plan.html").string();
  plan({config_, "--cluster", "a100-selene", "--nodes", "1,2,4", "--html", file});
  const std::string page = read_file(file);
  EXPECT_THAT(page, AllOf(HasSubstr("Time of a step, by layout"), HasSubstr("Memory of the rank"),
                          HasSubstr("Timeline of a step"), HasSubstr("Goodput of the best"),
                          HasSubstr("on the front"), HasSubstr("<svg"), HasSubstr(config_)));
}

TEST_F(PlanCommand, SaysWhereMemoryComesFrom) {
  const auto document = nlohmann::json::parse(
      plan({config_, "--cluster", "a100-selene", "--nodes", "1", "--top", "3", "--json"}));
  for (const auto& layout : document.at("layouts")) {
    EXPECT_EQ(layout.at("memory_from"), "engine");
  }
  EXPECT_THAT(plan({config_, "--cluster", "a100-selene", "--nodes", "1"}),
              HasSubstr("counted by the engine"));
}

TEST_F(PlanCommand, RanksLayoutsAndSaysWhereTheTimeGoes) {
  const std::string text = plan({config_, "--cluster", "a100-selene", "--nodes", "1,2"});
  EXPECT_THAT(text, AllOf(HasSubstr("Selene"), HasSubstr(" layouts, "), HasSubstr("best: dp "),
                          HasSubstr(" tokens/s), of which"), HasSubstr("products"),
                          HasSubstr("memory of a rank"), HasSubstr("Young and Daly"),
                          HasSubstr(" kWh"), HasSubstr(" *\n")));
  EXPECT_EQ(context_.exit_code, 0);
}

TEST_F(PlanCommand, ShortStepsHaveAUnitOfTheirOwn) {
  const std::string tiny = (folder_.path() / "tiny.yaml").string();
  write_named_file(tiny,
                   "model: {preset: tiny-gpt2}\n"
                   "data: {train: data}\n"
                   "train: {steps: 10, global_batch: 8, micro_batch: 1}\n"
                   "run: {dir: run}\n");
  const std::string text = plan({tiny, "--cluster", "test", "--nodes", "1"});
  EXPECT_THAT(text, AllOf(HasSubstr(" us "), Not(HasSubstr(" 0.000"))));
  const std::string count = text.substr(0, text.find(" layouts"));
  EXPECT_THAT(plan({tiny, "--cluster", "test", "--nodes", "1,1"}), HasSubstr(count + " layouts"));
}

TEST_F(PlanCommand, JsonHasTheSameTermsAndTheirSum) {
  const std::string out = (folder_.path() / "plan.json").string();
  const auto document = nlohmann::json::parse(
      plan({config_, "--cluster", "h100-pod", "--nodes", "2", "--json", "-J", out}));
  EXPECT_EQ(document["schema"], 2);
  EXPECT_EQ(nlohmann::json::parse(read_file(out)), document);
  ASSERT_EQ(document["layouts"].size(), 10U);
  EXPECT_TRUE(document["layouts"][0]["on_front"]) << "nothing is faster";
  EXPECT_EQ(plan_section(read_file(out), "p").figures.size(), 5U) << "trireme report reads it";
  for (const auto& layout : document["layouts"]) {
    double sum = 0;
    for (const auto& [name, seconds] : layout["terms"].items()) {
      sum += seconds.get<double>();
    }
    EXPECT_NEAR(sum, layout["step_seconds"].get<double>(), 1e-9);
    EXPECT_DOUBLE_EQ(
        layout["tokens_per_second"].get<double>() * layout["step_seconds"].get<double>(),
        256 * 2048);
    EXPECT_TRUE(document["advice"].empty());
    for (const char* name : {"step_seconds", "days", "kilowatt_hours"}) {
      const std::string key = name;
      EXPECT_LT(layout[key + "_low"], layout[key]);
      EXPECT_LT(layout[key], layout[key + "_high"]);
    }
    EXPECT_EQ(layout["dp"].get<int>() * layout["tp"].get<int>() * layout["pp"].get<int>(), 16);
  }
}

TEST_F(PlanCommand, ExplainsWithNumbersAndSaysWhyNot) {
  const std::string text = plan(
      {config_, "--cluster", "test", "--nodes", "1", "--explain", "--why-not", "dp=1,tp=4,pp=1"});
  EXPECT_THAT(
      text, AllOf(HasSubstr("queries, keys, values: ["), HasSubstr("step = the sum of these terms"),
                  HasSubstr("why not dp 1 tp 4 pp 1"), HasSubstr("instead of")));
  EXPECT_THAT(plan({config_, "--cluster", "test", "--nodes", "1", "--why-not", "tp=3"}),
              HasSubstr("it is impossible: heads 32 is not a multiple of tp 3"));
  EXPECT_THAT(plan({config_, "--cluster", "test", "--nodes", "1", "--why-not", "dp=64,tp=1,pp=1"}),
              HasSubstr("it needs 16 nodes, and the cluster has 4"));
}

TEST_F(PlanCommand, WhyNotFillsTheNodesOfTheBestLayoutOrThoseAskedFor) {
  const auto why_not = [&](const std::string& nodes, const std::string& layout) {
    const std::string text =
        plan({config_, "--cluster", "test", "--nodes", nodes, "--why-not", layout});
    return text.substr(text.find("why not "));
  };
  EXPECT_THAT(why_not("1", "tp=2,pp=1"), HasSubstr("why not dp 2 tp 2 pp 1"));
  EXPECT_THAT(why_not("2", "tp=2,pp=2"), HasSubstr("why not dp 2 tp 2 pp 2"));
  EXPECT_THAT(why_not("2", "dp=1,tp=4,pp=1"),
              HasSubstr("it needs 1 node, the best layout 2 nodes; a step takes"));
  const auto document = nlohmann::json::parse(
      plan({config_, "--cluster", "test", "--nodes", "2", "--top", "1", "--json"}));
  const auto& best = document["layouts"][0];
  EXPECT_THAT(why_not("2", fmt::format("micro_batch={}", best["micro_batch"].get<int>())),
              HasSubstr("it is the best"));
}

TEST_F(PlanCommand, WhatIsUnknownIsNull) {
  const std::string file = (folder_.path() / "cluster.yaml").string();
  write_named_file(file,
                   "version: 1\nname: small\nnodes: 1\n"
                   "device: {type: x, bf16_tflops: 100, memory: 80GiB, memory_gb_per_s: 900, "
                   "watts: 300}\nlinks: {gb_per_s: 50}\n");
  const std::vector<std::string> arguments = {config_, "train.steps=10", "--cluster", file};
  const std::string text = plan(arguments);
  EXPECT_THAT(text, AllOf(HasSubstr(" kWh"), Not(HasSubstr("CO2"))));
  std::vector<std::string> as_json = arguments;
  as_json.emplace_back("--json");
  const auto best = nlohmann::json::parse(plan(as_json))["layouts"][0];
  for (const char* key : {"price", "price_low", "price_high", "co2_kilograms"}) {
    EXPECT_TRUE(best.at(key).is_null()) << key;
  }
  EXPECT_GT(best.at("kilowatt_hours"), 0);
  std::vector<std::string> explained = arguments;
  explained.emplace_back("--explain");
  EXPECT_THAT(plan(explained), HasSubstr("300 W all the time, since device.idle_watts is unknown"));
  EXPECT_THAT(plan({config_, "--cluster", "test", "--nodes", "1", "--explain"}),
              HasSubstr("of the time computing x ("));
}

TEST_F(PlanCommand, SaysWhatWouldHelpIfNothingFits) {
  plan({config_, "model.preset=llama-405b", "--cluster", "test", "--nodes", "1"});
  EXPECT_EQ(context_.exit_code, 2);
  EXPECT_THAT(errors_, AllOf(HasSubstr("no layout of"), HasSubstr("needs least memory"),
                             HasSubstr("devices of")));
  const std::string page = (folder_.path() / "plan.html").string();
  const auto document =
      nlohmann::json::parse(plan({config_, "model.preset=llama-405b", "--cluster", "test",
                                  "--nodes", "1", "--json", "--html", page}));
  ASSERT_FALSE(document["advice"].empty());
  for (const auto& line : document["advice"]) {
    EXPECT_THAT(errors_, HasSubstr(line.get<std::string>()));
  }
  EXPECT_THAT(read_file(page), HasSubstr("What would help: "));
}

TEST_F(PlanCommand, RefusesWhatItCannotPlan) {
  const auto refused = [&](const std::vector<std::string>& arguments) {
    return message_of<ConfigError>([&] { plan(arguments); });
  };
  EXPECT_THAT(refused({}), HasSubstr("give a run's YAML file and --cluster"));
  EXPECT_THAT(refused({config_}), HasSubstr("--cluster"));
  EXPECT_THAT(refused({config_, "--cluster", "a100-selen"}), HasSubstr("did you mean a100-selene"));
  EXPECT_THAT(refused({config_, "--cluster", "test", "--nodes", "5"}),
              HasSubstr("cluster 'round numbers' has 4 nodes"));
  EXPECT_THAT(refused({config_, "--cluster", "test", "--nodes", "0"}), HasSubstr("--nodes"));
  EXPECT_THAT(refused({config_, "--cluster", "test", "train.no=1"}), HasSubstr("train.no"));
  EXPECT_THAT(refused({config_, "--cluster", "test", "--why-not", "dp=x"}), HasSubstr("dp=x"));
}

TEST_F(PlanCommand, NodesAreOneWord) {
  EXPECT_THAT(plan({"--cluster", "test", "--nodes", "2,4", config_, "train.global_batch=128"}),
              HasSubstr("best:"));
}

TEST_F(PlanCommand, ReplacesNothingThatItReads) {
  for (const char* const option : {"-J", "--html"}) {
    EXPECT_THAT(message_of<ConfigError>([&] {
                  plan({config_, "--cluster", "test", option, config_});
                }),
                HasSubstr(option));
  }
  EXPECT_THAT(read_file(config_), HasSubstr("llama-1b"));
}

TEST_F(PlanCommand, ShowsClustersByNameAndByFile) {
  const std::string by_name = plan({"cluster", "test"});
  EXPECT_THAT(by_name, HasSubstr("bf16_tflops: 100"));
  EXPECT_THAT(plan({"cluster", (kTop / "configs/cluster/test.yaml").string()}),
              HasSubstr("bf16_tflops: 100"));
}

TEST_F(PlanCommand, ValidatesAgainstPublishedRuns) {
  const std::string runs = (kTop / "benchmarks/plan/published_runs.csv").string();
  const std::string text = plan({"validate", runs});
  EXPECT_THAT(text, AllOf(HasSubstr("sc21_t1"), HasSubstr("left out: "),
                          HasSubstr("share of the predicted step"),
                          HasSubstr("times as long as the best one")));
  const auto document = nlohmann::json::parse(plan({"validate", runs, "--json", "--worst", "1"}));
  EXPECT_LE(document["errors"]["median"], 0.08);
  EXPECT_EQ(document["sources"][0]["worst"].size(), 1U);
}

TEST_F(PlanCommand, ErrorsAreThoseOfTheDocument) {
  const std::string runs = (kTop / "benchmarks/plan/published_runs.csv").string();
  const std::string page = read_file(kTop / "docs/planner.md");
  const auto document = nlohmann::json::parse(plan({"validate", runs, "--json"}));
  const auto percent = [](const nlohmann::json& of) { return 100 * of.get<double>(); };
  for (const nlohmann::json& source : document["sources"]) {
    const nlohmann::json& errors = source["errors"];
    EXPECT_THAT(
        page, HasSubstr(fmt::format("| {} | {:.1f} | {:.1f} | {:.1f} | {:+.1f} | {:.1f} | {:.1f} |",
                                    errors["runs"].get<int>(), percent(errors["mean_absolute"]),
                                    percent(errors["median"]), percent(errors["p90"]),
                                    percent(errors["bias"]),
                                    percent(source["fitted_to_others"]["mean_absolute"]),
                                    percent(source["fitted_to_a_tenth"]["mean_absolute"]))))
        << source["source"];
  }
}

// Sets of runs in which the run predicted fastest was not the fastest are rows of the document.
TEST_F(PlanCommand, LossesByTheChoiceAreThoseOfTheDocument) {
  const std::string runs = (kTop / "benchmarks/plan/published_runs.csv").string();
  const std::string page = read_file(kTop / "docs/planner.md");
  const auto document = nlohmann::json::parse(plan({"validate", runs, "--json"}));
  int sets = 0;
  int lost = 0;
  for (const nlohmann::json& source : document["sources"]) {
    for (const nlohmann::json& regret : source["regret"]) {
      ++sets;
      const std::string ratio = fmt::format("{:.3f}", regret["ratio"].get<double>());
      if (ratio != "1.000") {
        ++lost;
        EXPECT_THAT(page,
                    HasSubstr(fmt::format("| {} | {} | {} |", regret["grid"].get<std::string>(),
                                          regret["layouts"].get<int>(), ratio)));
      }
    }
  }
  EXPECT_THAT(page, HasSubstr(fmt::format("has {} such sets. In {} of them", sets, sets - lost)));
}

}  // namespace
}  // namespace trireme
