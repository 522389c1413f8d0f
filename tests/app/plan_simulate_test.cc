#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/app/plan/plan_subcommands.h"
#include "src/base/file.h"
#include "tests/app/command_run.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;

CommandRun run_plan(std::vector<std::string> words) {
  return run_command_line(
      [](CommandLine& app, int&) {
        add_plan_simulate_command(app);
        add_plan_network_command(app);
      },
      words);
}

std::filesystem::path golden_journal() {
  return std::filesystem::path(TRIREME_SOURCE_DIR) / "tests/golden/journal";
}

TEST(PlanSimulate, ThirtyDaysOf16384Gpus) {
  const CommandRun run = run_plan({"simulate", "--nodes", "2048", "--days", "30", "--spares", "16",
                                   "--seed", "1", "--draws", "2", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto document = nlohmann::json::parse(run.out);
  EXPECT_EQ(document["nodes"], 2048);
  EXPECT_GT(document["goodput"], 0.9);
  EXPECT_GT(document["measures"].size(), 6U);
  const CommandRun again = run_plan({"simulate", "nodes=2048", "days=30", "spares=16", "--draws",
                                     "2", "--json", "--threads", "2"});
  EXPECT_EQ(again.out, run.out);
}

TEST(PlanSimulate, PrintsATableAndDrawsAFigure) {
  const TempFolder folder;
  const std::string svg = (folder.path() / "goodput.svg").string();
  const CommandRun run = run_plan(
      {"simulate", "--nodes", "16", "--days", "3", "--draws", "3", "--no-measures", "--svg", svg});
  EXPECT_THAT(run.out, AllOf(HasSubstr("16 nodes, 0 spares, 3 days"), HasSubstr("goodput"),
                             testing::Not(HasSubstr("one measure alone"))));
  EXPECT_THAT(read_file(svg), HasSubstr("<svg"));
}

TEST(PlanSimulate, ReplaysAJournalAndLearnsFromIt) {
  const CommandRun replay =
      run_plan({"simulate", "--journal", golden_journal().string(), "--replay", "--json"});
  ASSERT_EQ(replay.code, 0) << replay.err;
  const auto document = nlohmann::json::parse(replay.out);
  EXPECT_NEAR(
      document["simulated_goodput"].get<double>() / document["measured_goodput"].get<double>(), 1,
      0.03);
  EXPECT_THAT(run_plan({"simulate", "--journal", golden_journal().string(), "--replay"}).out,
              HasSubstr("replay of 13 faults"));
  // Its faults, one every 44 s, are absurd for a real machine.
  const CommandRun absurd =
      run_plan({"simulate", "--journal", golden_journal().string(), "--nodes", "100000"});
  EXPECT_EQ(absurd.code, 2);
  EXPECT_THAT(absurd.err, HasSubstr("no job would get on"));
  const CommandRun larger = run_plan({"simulate", "--journal", golden_journal().string(), "--days",
                                      "0.1", "--draws", "3", "--nodes", "4"});
  ASSERT_EQ(larger.code, 0) << larger.err;
  EXPECT_THAT(larger.out, HasSubstr("failure rates: of the run"));
}

TEST(PlanSimulate, RefusesBadInput) {
  const TempFolder folder;
  const auto refused = [](std::vector<std::string> words, int code, const char* text) {
    words.insert(words.begin(), "simulate");
    const CommandRun run = run_plan(words);
    EXPECT_EQ(run.code, code) << run.err;
    EXPECT_THAT(run.err, HasSubstr(text));
  };
  refused({"rates.node=-1"}, 2, "rates.node");
  refused({"--nodes", "0"}, 2, "--nodes");
  refused({"--days", "-3"}, 2, "--days");
  refused({"--draws", "0"}, 2, "--draws");
  refused({"--replay"}, 2, "--journal");
  refused({"--svg", "figure.png"}, 2, "must end in .svg");
  refused({"--journal", (folder.path() / "none").string()}, 66, "no journal.jsonl");
  refused({"--job", (folder.path() / "none.yaml").string()}, 66, "none.yaml");
  write_file_durably(folder.path() / "journal.jsonl", "{}\nnot JSON\n");
  refused({"--journal", folder.path().string()}, 65, "nothing to learn");
  write_file_durably(folder.path() / "job.yaml", "version: 7\n");
  refused({"--job", (folder.path() / "job.yaml").string()}, 2, "use a newer program");
  write_file_durably(folder.path() / "config.yaml", "checkpoint: {every: often}\n");
  refused({"--journal", folder.path().string()}, 2, "checkpoint.every is 'often'");
}

TEST(PlanNetwork, PrintsScalingCurves) {
  const TempFolder folder;
  const std::string svg = (folder.path() / "network.svg").string();
  const CommandRun run = run_plan({"network", "--nodes", "16", "--bytes", "256M", "--svg", svg});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("all_reduce of 256 MiB on rail"), HasSubstr("ring"),
                             HasSubstr("hierarchical"), HasSubstr("* the fastest")));
  EXPECT_THAT(read_file(svg), HasSubstr("<svg"));
  const auto document = nlohmann::json::parse(
      run_plan({"network", "--nodes", "16", "--fabric", "dragonfly", "--json"}).out);
  EXPECT_EQ(document["fabric"], "dragonfly");
  EXPECT_EQ(run_plan({"network", "--nic-rate", "0"}).code, 2);
  for (const char* option : {"--nic-rate", "--link-rate", "--leaf-taper", "--spread"}) {
    EXPECT_EQ(run_plan({"network", option, "1e-308"}).code, 2) << option;
  }
  EXPECT_EQ(run_plan({"network", "--nic-latency", "1e308"}).code, 2);
  EXPECT_EQ(run_plan({"network", "--fabric", "torus"}).code, 2);
  EXPECT_EQ(run_plan({"network", "--bytes", "many"}).code, 2);
}

}  // namespace
}  // namespace trireme
