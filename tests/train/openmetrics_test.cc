#include "src/train/report/openmetrics.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/command.h"
#include "src/base/file.h"
#include "src/base/log.h"
#include "src/train/run/openmetrics_path.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

StepMetrics logged(std::int64_t step) {
  StepMetrics m;
  m.step = step;
  m.loss = 2.5;
  m.loss_mean = 2.75;
  m.grad_norm = 0.5;
  m.tokens = 1000 * step;
  m.tokens_left = 4000;
  m.tokens_per_s = 2000;
  m.step_ms = 500;
  m.mfu = 0.4;
  m.checkpoint_stall_ms = 100;
  m.memory_bytes = 1 << 20;
  return m;
}

// Gauges in which everything is known.
RunGauges full_gauges() {
  RunGauges g;
  g.run = "first";
  g.slurm_job = "17";
  g.metrics = logged(10);
  g.metrics.cross_entropy = 2.25;
  g.metrics.kl_divergence = 0.75;
  g.metrics.cpu_joules = 50;
  g.metrics.gpu_joules = 100;
  g.metrics.device = "NVIDIA H100";
  g.metrics.step_tokens = 1000;
  g.metrics.energy_seconds = 0.25;
  g.validation_loss = 3;
  g.step = 12;
  g.steps = 20;
  g.ranks = 4;
  g.now = 1'000'010;
  g.past = {1'000'000, 4, 10, 2};
  g.factors.co2_grams_per_kwh = 360;
  g.factors.price_per_kwh = 0.36;
  g.factors.pue = 2;
  return g;
}

std::set<std::string> names_in(const std::string& text, const std::string& before) {
  std::set<std::string> names;
  const std::regex name(before + "(trireme_[a-z0-9_]+)");
  for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at) {
    names.insert((*at)[1]);
  }
  return names;
}

TEST(OpenMetricsText, HasTheValuesInBaseUnits) {
  const std::string text = openmetrics_text(full_gauges());
  const std::string labels = "{run=\"first\",slurm_job=\"17\"";
  for (const std::string& line :
       {"trireme_step" + labels + "} 12", "trireme_logged_step" + labels + "} 10",
        "trireme_step_seconds" + labels + "} 0.5", "trireme_loss" + labels + "} 2.5",
        "trireme_time_left_seconds" + labels + "} 2", "trireme_goodput_ratio" + labels + "} 0.4",
        "trireme_cross_entropy" + labels + "} 2.25", "trireme_kl_divergence" + labels + "} 0.75",
        "trireme_restarts" + labels + "} 2",
        "trireme_power_watts" + labels + ",source=\"cpu\"} 200",
        "trireme_energy_per_token_joules" + labels + ",source=\"gpu\"} 0.1",
        "trireme_carbon_per_step_grams" + labels + "} 0.03",
        "trireme_run_info" + labels + ",device=\"NVIDIA H100\"} 1"}) {
    EXPECT_THAT(text, HasSubstr("\n" + line + "\n"));
  }
  EXPECT_TRUE(text.ends_with("\n# EOF\n"));
}

TEST(OpenMetricsText, LeavesOutWhatIsNotKnown) {
  RunGauges g = full_gauges();
  g.metrics.cpu_joules.reset();
  g.metrics.tokens_per_s = std::nan("");
  g.past.restarts.reset();
  g.validation_loss.reset();
  const std::string text = openmetrics_text(g);
  EXPECT_EQ(names_in(text, "\n").count("trireme_restarts"), 0U);
  for (const char* const name :
       {"tokens_per_second", "time_left", "validation", "carbon", "price", "source=\"cpu\""}) {
    EXPECT_THAT(text, Not(HasSubstr(name))) << "a part of the energy is not known";
  }
  EXPECT_THAT(text, HasSubstr("source=\"gpu\""));
  g.metrics = StepMetrics();
  EXPECT_THAT(openmetrics_text(g), Not(HasSubstr("trireme_loss"))) << "nothing was logged yet";
}

TEST(OpenMetricsText, ALossThatIsNoNumberIsShown) {
  RunGauges g = full_gauges();
  g.metrics.loss = std::nan("");
  EXPECT_THAT(openmetrics_text(g), HasSubstr("slurm_job=\"17\"} NaN\n"));
}

TEST(OpenMetricsText, LabelsAreEscaped) {
  RunGauges g = full_gauges();
  g.run = "a\"b\\c\nd\xff";
  EXPECT_THAT(openmetrics_text(g), HasSubstr("{run=\"a\\\"b\\\\c\\nd\xEF\xBF\xBD\","));
}

// Every metric of the dashboard and of the alerts is one that runs write.
TEST(OpenMetricsText, AnswersEveryQueryOfTheDashboardAndTheAlerts) {
  const std::set<std::string> written = names_in(openmetrics_text(full_gauges()), "# TYPE ");
  ASSERT_GT(written.size(), 25U);
  const fs::path folder = fs::path(TRIREME_SOURCE_DIR) / "docs/grafana";
  const nlohmann::json dashboard = nlohmann::json::parse(read_file(folder / "trireme.json"));
  std::set<std::string> shown;
  std::set<int> ids;
  for (const nlohmann::json& panel : dashboard.at("panels")) {
    EXPECT_TRUE(ids.insert(panel.at("id").get<int>()).second) << "an id stands twice";
    if (panel.at("type") == "row") {
      continue;
    }
    EXPECT_FALSE(panel.at("description").get<std::string>().empty()) << panel.at("title");
    ASSERT_FALSE(panel.at("targets").empty()) << panel.at("title");
    for (const nlohmann::json& target : panel.at("targets")) {
      const std::set<std::string> names = names_in(target.at("expr"), "");
      EXPECT_FALSE(names.empty()) << target.at("expr");
      shown.insert(names.begin(), names.end());
    }
  }
  const std::set<std::string> alerted = names_in(read_file(folder / "alerts.yaml"), "[^A-Za-z_]");
  EXPECT_GT(shown.size(), 15U);
  EXPECT_GT(alerted.size(), 5U);
  shown.insert(alerted.begin(), alerted.end());
  for (const std::string& name : shown) {
    EXPECT_TRUE(written.contains(name)) << name;
  }
}

class OpenMetricsTest : public testing::Test {
 protected:
  OpenMetricsTest() {
    config_.run_dir = folder_.path() / "run";
    fs::create_directories(config_.run_dir);
    config_.metrics.openmetrics = folder_.path() / "trireme.prom";
    config_.train.steps = 20;
  }
  std::string text() const { return read_file(config_.metrics.openmetrics); }

  TempFolder folder_;
  RunConfig config_;
};

TEST_F(OpenMetricsTest, PromtoolAcceptsTheText) {
  const char* const named = std::getenv("TRIREME_PROMTOOL");
  const std::string promtool = named == nullptr ? "promtool" : named;
  if (!run_command({promtool, "--version"}, std::chrono::seconds(10)).good()) {
    GTEST_SKIP() << "there is no promtool (Debian: package prometheus; TRIREME_PROMTOOL names one)";
  }
  std::ofstream(config_.metrics.openmetrics) << openmetrics_text(full_gauges());
  const CommandResult checked = run_command(
      {"sh", "-c", promtool + " check metrics < '" + config_.metrics.openmetrics.string() + "'"},
      std::chrono::seconds(30));
  EXPECT_EQ(checked.code, 0) << checked.output << checked.errors;
  EXPECT_EQ(checked.errors, "") << "promtool has remarks";
  const CommandResult rules = run_command(
      {promtool, "check", "rules", std::string(TRIREME_SOURCE_DIR) + "/docs/grafana/alerts.yaml"},
      std::chrono::seconds(30));
  EXPECT_EQ(rules.code, 0) << rules.output << rules.errors;
}

TEST_F(OpenMetricsTest, IsWrittenAtOnceAndThenInIntervals) {
  OpenMetricsFile file(config_, 2);
  EXPECT_EQ(file.tick(0), "");
  EXPECT_THAT(text(), testing::AllOf(HasSubstr("trireme_step{run=\""), HasSubstr("\"} 0\n"),
                                     HasSubstr("trireme_run_active{run=")));
  file.note(logged(1));
  EXPECT_EQ(file.tick(1), "");
  EXPECT_THAT(text(), Not(HasSubstr("trireme_loss"))) << "15 s have not passed";
  EXPECT_EQ(file.finish(), "");
  EXPECT_THAT(text(), HasSubstr("trireme_loss{"));
  EXPECT_TRUE(std::regex_search(text(), std::regex("trireme_run_active\\{[^}]*\\} 0\n")));
  EXPECT_EQ(fs::status(config_.metrics.openmetrics).permissions(),
            fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read |
                fs::perms::others_read);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 2)
      << "a temporary file was left";
}

TEST_F(OpenMetricsTest, AFailedWriteIsReportedOnceAndTriedAgain) {
  config_.metrics.openmetrics = folder_.path() / "absent" / "trireme.prom";
  config_.metrics.openmetrics_every = 0;
  OpenMetricsFile file(config_, 1);
  EXPECT_THAT(file.tick(1), HasSubstr("absent"));
  EXPECT_EQ(file.tick(2), "");
  fs::create_directories(folder_.path() / "absent");
  EXPECT_EQ(file.tick(3), "");
  EXPECT_THAT(text(), HasSubstr("} 3\n"));
}

TEST_F(OpenMetricsTest, ReplacesOnlyRegularFiles) {
  std::ofstream(folder_.path() / "precious") << "precious";
  fs::create_symlink(folder_.path() / "precious", config_.metrics.openmetrics);
  EXPECT_THAT(OpenMetricsFile(config_, 1).tick(1), HasSubstr("not a regular file"));
  EXPECT_EQ(read_file(folder_.path() / "precious"), "precious");
}

TEST_F(OpenMetricsTest, RunsShareAFolderWithoutSharingAFile) {
  config_.metrics.openmetrics = folder_.path();
  config_.run_name = "../a b/";
  const fs::path first = openmetrics_path(config_);
  EXPECT_EQ(first.parent_path(), folder_.path());
  EXPECT_THAT(first.filename().string(), testing::StartsWith("trireme-___a_b_-"));
  config_.run_dir = folder_.path() / "other";
  EXPECT_NE(openmetrics_path(config_), first);
}

TEST_F(OpenMetricsTest, GoodputCountsAllStartsOfTheRun) {
  std::ofstream(config_.run_dir / "metrics.jsonl")
      << R"({"step": 10, "step_ms": 1000, "checkpoint_stall_ms": 200, "time": 1010})"
      << "\n"
      << R"({"step": 10, "step_ms": null, "time": 1015, "val_loss": 3})"
      << "\n"
      << "{\"step\": 2"
      << "\n"
      << R"([1, 2])"
      << "\n"
      << R"({"step": 9223372036854775807, "step_ms": 1})"
      << "\n"
      << R"({"step": -9223372036854775808, "step_ms": 1})"
      << "\n"
      << R"({"step": "x", "time": {}})"
      << "\n"
      << R"({"step": 20, "step_ms": 500, "checkpoint_stall_ms": null, "time": 1100})"
      << "\n";
  PastTime past = past_time_of(config_.run_dir);
  EXPECT_DOUBLE_EQ(past.began, 1000);
  EXPECT_DOUBLE_EQ(past.useful, 8 + 5);
  EXPECT_EQ(past.step, 20);
  EXPECT_FALSE(past.restarts);
  std::ofstream(config_.run_dir / "journal.jsonl") << R"({"event": "begin", "time": 990})"
                                                   << "\n"
                                                   << R"({"event": "launch", "time": 991})"
                                                   << "\n"
                                                   << R"({"event": ["launch"], "time": 992})"
                                                   << "\n"
                                                   << R"({"event": "launch", "time": 993})"
                                                   << "\n";
  past = past_time_of(config_.run_dir);
  EXPECT_DOUBLE_EQ(past.began, 990);
  EXPECT_EQ(past.restarts, 1);
}

TEST_F(OpenMetricsTest, MetricsLogKeepsTheFile) {
  Log log({.terminal_level = LogLevel::error, .folder = folder_.path() / "logs"});
  MetricsLog metrics(RunDirectory(config_.run_dir), log, {0, 20, 4});
  metrics.keep_openmetrics(config_, 2);
  metrics.write(logged(1));
  metrics.tick(1);
  metrics.finish();
  EXPECT_THAT(text(), testing::AllOf(HasSubstr("trireme_loss{"), HasSubstr("trireme_steps{")));
}

TEST(EnergyFactors, TurnJoulesIntoCarbonAndMoney) {
  EnergyConfig factors;
  EXPECT_FALSE(factors.grams(3.6e6)) << "no factor is known";
  factors.co2_grams_per_kwh = 400;
  factors.price_per_kwh = 0.5;
  factors.pue = 1.5;
  EXPECT_DOUBLE_EQ(factors.grams(3.6e6).value(), 600);
  EXPECT_DOUBLE_EQ(factors.price(7.2e6).value(), 1.5);
}

TEST(OpenMetricsText, IsKnownInAFile) {
  const TempFolder folder;
  const std::filesystem::path file = folder.path() / "run.prom";
  EXPECT_FALSE(holds_foreign_metrics(file)) << "there is none";
  write_file_durably(file, openmetrics_text({}));
  EXPECT_FALSE(holds_foreign_metrics(file));
  write_file_durably(file, "node_load1 0.5\n");
  EXPECT_TRUE(holds_foreign_metrics(file));
}

}  // namespace
}  // namespace trireme
