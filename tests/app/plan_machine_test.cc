// `trireme plan network` and `trireme plan calibrate --from`: the commands of the planner about
// machines rather than runs.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "src/app/plan/plan_command.h"
#include "src/base/file.h"
#include "tests/app/command_run.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using Words = std::vector<std::string>;

class PlanMachine : public testing::Test {
 protected:
  CommandRun plan(Words words) {
    words.insert(words.begin(), "plan");
    return run_command_line([this](CommandLine& app, int&) { add_plan_command(app, context_); },
                            words);
  }
  // Returns the points of `plan network --json` with these options.
  json points(Words words) {
    words.insert(words.begin(), {"network", "--json"});
    const CommandRun run = plan(words);
    EXPECT_EQ(run.code, 0) << run.err;
    return json::parse(run.out).at("points");
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  const TempFolder folder_;
  AppContext context_;
};

double seconds_of_best(const json& points, std::int64_t gpus) {
  double best = std::numeric_limits<double>::infinity();
  for (const json& point : points) {
    if (point.at("gpus") == gpus) {
      best = std::min(best, point.at("seconds").get<double>());
    }
  }
  return best;
}

TEST_F(PlanMachine, ANetworkHasARowForEachAlgorithmAndSize) {
  const CommandRun run = plan({"network", "--nodes", "4", "--gpus-per-node", "8"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, StartsWith("all_reduce of 1 GiB on rail, 8 GPUs per node\n"));
  EXPECT_THAT(run.out, AllOf(HasSubstr("bus GB/s"), HasSubstr("* the fastest\n")));
  for (const std::int64_t gpus : {8, 16, 32}) {
    EXPECT_THAT(run.out, HasSubstr(fmt::format("\n{:>7} ", gpus)));
  }
}

// 2 (n-1)/n S / t is the bus bandwidth of an all-reduce.
TEST_F(PlanMachine, BusBandwidthsFollowFromTimes) {
  for (const json& point : points({"--nodes", "4", "--bytes", "1GiB"})) {
    const double n = point.at("ranks");
    const double expected = 2 * (n - 1) / n * 0x1p30 / point.at("seconds").get<double>() / 1e9;
    EXPECT_NEAR(point.at("bus_gb_per_s").get<double>(), expected, 1e-6 * expected) << point;
  }
}

TEST_F(PlanMachine, UnitsAreThoseOfTheOptions) {
  const Words base = {"--nodes", "2", "--gpus-per-node", "1", "--nics-per-node", "1"};
  const auto with = [&](Words more) {
    more.insert(more.begin(), base.begin(), base.end());
    return seconds_of_best(points(more), 2);
  };
  const double slow = with({"--nic-rate", "10"});
  EXPECT_NEAR(slow, 0x1p30 / 10e9, 0.02 * slow) << "a ring of two sends 2 * 1/2 of the buffer";
  EXPECT_NEAR(with({"--nic-rate", "20"}), slow / 2, 0.02 * slow) << "GB/s";
  EXPECT_GT(with({"--nic-rate", "10", "--nic-latency", "1000"}), slow + 1e-3) << "microseconds";
  EXPECT_GT(with({"--nic-rate", "10", "--switch-latency", "1000"}), slow + 1e-3);
}

TEST_F(PlanMachine, ANetworkCanBeDrawn) {
  EXPECT_EQ(plan({"network", "--nodes", "8", "--svg", path("net.svg")}).code, 0);
  const std::string picture = read_file(path("net.svg"));
  EXPECT_THAT(picture, AllOf(HasSubstr("<svg"), HasSubstr("bus bandwidth, GB/s")));
  const CommandRun other = plan({"network", "--svg", path("net.png")});
  EXPECT_EQ(other.code, static_cast<int>(ExitCode::usage));
  EXPECT_THAT(other.err, HasSubstr("the name of a figure must end in .svg"));
  EXPECT_FALSE(std::filesystem::exists(path("net.png")));
}

TEST_F(PlanMachine, ImpossibleNetworksAreRefused) {
  for (const auto& [option, value] :
       std::vector<std::pair<std::string, std::string>>{{"--nodes", "0"},
                                                        {"--nic-rate", "0"},
                                                        {"--spread", "1.5"},
                                                        {"--fabric", "string"},
                                                        {"--op", "sum_all"},
                                                        {"--bytes", "much"},
                                                        {"--link-latency", "-1"}}) {
    const CommandRun run = plan({"network", option, value});
    EXPECT_EQ(run.code, static_cast<int>(ExitCode::usage)) << option;
    EXPECT_THAT(run.err, HasSubstr(value));
  }
  EXPECT_EQ(plan({"network", "--nodes", "2", "--gpus-per-node", "4", "--stride", "3"}).code,
            static_cast<int>(ExitCode::usage))
      << "groups of every third GPU do not fill the nodes";
}

// Returns what a run that computed for so many seconds per step leaves in prediction.json.
std::string prediction(const std::string& name, double compute) {
  return fmt::format(
      R"({{"schema": 1, "cluster": "test", "residual_percent": 4.0, "name": "{}",
 "model": {{"layers": 6, "hidden": 384, "heads": 6, "kv_heads": 2, "head_dim": 64, "ffn": 1024,
  "vocab": 257, "sequence": 256, "gated": true, "tied": false, "dropout": false}},
 "precision": "bf16",
 "layout": {{"dp": 1, "tp": 1, "pp": 1, "virtual_stages": 1, "schedule": "1f1b", "micro_batch": 1,
  "micro_batches": 4, "zero": 0, "recompute": "none", "sequence_parallel": false}},
 "steps": 20, "measured": {{"compute": {}, "tensor": 0, "pipeline": 0, "replicas": 0,
  "update": 0.004, "data": 0.0001, "checkpoint": 0}}, "memory_bytes": 81000000,
 "predicted": {{"compute": 0.11, "tensor": 0, "pipeline": 0, "replicas": 0, "update": 0.004,
  "data": 0, "checkpoint": 0}}}})",
      name, compute);
}

TEST_F(PlanMachine, FactorsAreFittedToFinishedRuns) {
  std::vector<double> factors;
  for (const double compute : {0.05, 0.1}) {
    write_named_file(path("run.json"), prediction("first", compute));
    const CommandRun run =
        plan({"calibrate", "--from", path("run.json"), "--cluster", "test", "--out",
              path("fitted.yaml"), "--name", "mine", "-J", path("fit.json")});
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_THAT(run.out, AllOf(HasSubstr("factors: products "), HasSubstr("first")));
    const std::string text = read_file(path("fitted.yaml"));
    EXPECT_THAT(text, AllOf(HasSubstr("Written by trireme plan calibrate"), HasSubstr("mine"),
                            HasSubstr("fitted to 1 measured step")));
    const json fit = json::parse(read_file(path("fit.json")));
    EXPECT_EQ(fit.at("cluster"), "mine");
    ASSERT_EQ(fit.at("steps").size(), 1U);
    EXPECT_NEAR(fit.at("steps").at(0).at("predicted").at("compute").get<double>(), compute,
                0.1 * compute);
    const std::string products = run.out.substr(run.out.find("products ") + 9);
    factors.push_back(std::stod(products));
    EXPECT_EQ(plan({"cluster", path("fitted.yaml")}).code, 0) << "other commands can read it";
  }
  EXPECT_GT(factors[1], 1.5 * factors[0]) << "a machine that computes half as fast";
}

TEST_F(PlanMachine, CalibrateSaysWhatItLacks) {
  const std::string out = path("out.yaml");
  const CommandRun nothing = plan({"calibrate", "--out", out});
  EXPECT_EQ(nothing.code, static_cast<int>(ExitCode::usage));
  EXPECT_THAT(nothing.err, HasSubstr("give the YAML file of a run to measure with"));
  const CommandRun no_cluster = plan({"calibrate", "--from", path("run.json"), "--out", out});
  EXPECT_EQ(no_cluster.code, static_cast<int>(ExitCode::usage));
  EXPECT_THAT(no_cluster.err, HasSubstr("--from alone measures nothing"));
  const CommandRun no_config = plan({"calibrate", "train.steps=3", "--from", path("run.json"),
                                     "--cluster", "test", "--out", out});
  EXPECT_EQ(no_config.code, static_cast<int>(ExitCode::usage));
  EXPECT_THAT(no_config.err, HasSubstr("KEY=VALUE needs a run's YAML file"));
  const CommandRun absent =
      plan({"calibrate", "--from", path("run.json"), "--cluster", "test", "--out", out});
  EXPECT_EQ(absent.code, static_cast<int>(ExitCode::not_found));
  write_named_file(path("run.json"), "{\"schema\": 9}");
  const CommandRun newer =
      plan({"calibrate", "--from", path("run.json"), "--cluster", "test", "--out", out});
  EXPECT_EQ(newer.code, static_cast<int>(ExitCode::bad_data));
  EXPECT_THAT(newer.err, HasSubstr("use a newer one"));
  EXPECT_FALSE(std::filesystem::exists(out));
}

}  // namespace
}  // namespace trireme
