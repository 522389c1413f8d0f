#include "src/plan/simulate/job_model.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/save_interval.h"
#include "src/plan/simulate/published_rates.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal(const std::vector<std::string>& arguments) {
  return message_of<ConfigError>([&] { load_job_model({}, arguments); });
}

TEST(JobModel, DefaultsToThePublishedRates) {
  const JobModel model = load_job_model({}, {});
  // 419 interruptions of 2048 nodes in 54 days: one every 3.1 hours.
  EXPECT_NEAR(model.mean_seconds_between_stops(), 54 * 86400.0 / 419, 1);
  const JobModel opt = load_job_model({}, {"rates.source=opt175b", "nodes=124"});
  EXPECT_NEAR(opt.mean_seconds_between_stops(), 60 * 86400.0 / 105, 1);
  // Kokolis et al. project a mean time to failure of 7.9 hours for jobs of 1024 GPUs; that of RSC-1
  // alone is 28.8 (6.5 failures per 1000 node-days of hardware).
  const JobModel rsc = load_job_model({}, {"rates.source=rsc1", "nodes=128"});
  EXPECT_NEAR(rsc.mean_seconds_between_stops() / 3600, 28.8, 0.1);
  const JobModel none = load_job_model({}, {"rates.source=none"});
  EXPECT_TRUE(std::isinf(none.mean_seconds_between_stops()));
}

TEST(JobModel, EveryPublishedRateHasASource) {
  EXPECT_EQ(published_rate_names().front(), "llama3");
  for (const PublishedRates& rates : published_rates()) {
    EXPECT_FALSE(rates.source.empty());
    EXPECT_EQ(published_rates_of(rates.name).node, rates.node);
  }
}

TEST(JobModel, AutoIsTheIntervalOfYoungAndDaly) {
  const JobModel model = load_job_model({}, {"step_seconds=5"});
  const double between = model.mean_seconds_between_stops();
  EXPECT_EQ(model.memory_interval(), std::llround(best_interval(2, between) / 5));
  EXPECT_EQ(model.disk_interval(), std::llround(best_interval(180, between) / 5));
  // Without copies in memory, a save on disk costs its stall.
  const JobModel disk = load_job_model({}, {"checkpoint.memory_every=0", "step_seconds=5"});
  EXPECT_EQ(disk.memory_interval(), 0);
  EXPECT_EQ(disk.disk_interval(), std::llround(best_interval(2, between) / 5));
  // It is never shorter than a save takes.
  EXPECT_EQ(load_job_model({}, {"checkpoint.memory_seconds=5000"}).memory_interval(), 500);
  EXPECT_GT(load_job_model({}, {"rates.source=none"}).disk_interval(), 1'000'000'000);
}

TEST(JobModel, WarnsOfSavesThatComeFasterThanOneTakes) {
  EXPECT_TRUE(save_warnings(load_job_model({}, {})).empty());
  // An automatic interval is rounded up to what a save takes.
  EXPECT_TRUE(save_warnings(load_job_model({}, {"checkpoint.memory_seconds=184",
                                                "checkpoint.disk_seconds=5004"}))
                  .empty());
  const auto warnings = save_warnings(
      load_job_model({}, {"step_seconds=1", "checkpoint.every=9", "checkpoint.memory_every=0"}));
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_THAT(warnings[0], AllOf(HasSubstr("on disk every 9.0s, but one takes 3m00s"),
                                 HasSubstr("checkpoint.disk_seconds")));
  EXPECT_THAT(save_warnings(load_job_model({}, {"checkpoint.memory_every=1"})).at(0),
              HasSubstr("in memory every 10s, but one takes 20s"));
  EXPECT_TRUE(
      save_warnings(load_job_model({}, {"checkpoint.memory_every=1", "checkpoint.partner=false"}))
          .empty());
}

TEST(JobModel, NamesTheHelpThatListsItsKeys) {
  const std::string message = refusal({"wibblewobble=1", "zyxwvutsr=2"});
  EXPECT_THAT(message, HasSubstr("docs/planner-simulate.md lists all keys"));
  EXPECT_THAT(message, testing::Not(HasSubstr("config show")));
}

TEST(JobModel, ReadsAFileAndArgumentsOverIt) {
  const TempFolder folder;
  const auto file = folder.path() / "job.yaml";
  write_file_durably(file,
                     "version: 1\nnodes: 512\nrates: {source: none, node: 3}\n"
                     "checkpoint: {every: 500, memory_every: auto, partner: false}\n");
  const JobModel model = load_job_model(file, {"rates.node=4", "days=7"});
  EXPECT_EQ(model.nodes, 512);
  EXPECT_EQ(model.rates.node, 4);
  EXPECT_EQ(model.rates.process, 0);
  EXPECT_EQ(model.disk_interval(), 500);
  EXPECT_FALSE(model.checkpoint.partner);
  EXPECT_EQ(model.days, 7);
}

TEST(JobModel, RefusesWhatCantBe) {
  EXPECT_THAT(refusal({"rates.node=-1"}), AllOf(HasSubstr("rates.node"), HasSubstr("-1")));
  EXPECT_THAT(refusal({"rates.node=1e9"}), HasSubstr("rates.node"));
  EXPECT_THAT(refusal({"rates.node=nan"}), HasSubstr("rates.node"));
  EXPECT_THAT(refusal({"nodes=0"}), HasSubstr("nodes"));
  EXPECT_THAT(refusal({"days=0"}), HasSubstr("days"));
  EXPECT_THAT(refusal({"days=inf"}), HasSubstr("days"));
  EXPECT_THAT(refusal({"step_seconds=0"}), HasSubstr("step_seconds"));
  EXPECT_THAT(refusal({"checkpoint.every=-5"}), HasSubstr("checkpoint.every"));
  EXPECT_THAT(refusal({"straggler.slowdown=0.5"}), HasSubstr("straggler.slowdown"));
  EXPECT_THAT(refusal({"rates.lemon_share=2"}), HasSubstr("rates.lemon_share"));
  EXPECT_THAT(refusal({"rates.source=gpt5"}), AllOf(HasSubstr("gpt5"), HasSubstr("llama3")));
  EXPECT_THAT(refusal({"rates.nodes=1"}), AllOf(HasSubstr("rates.nodes"), HasSubstr("rates.node")));
  EXPECT_THAT(refusal({"nodes=10", "min_nodes=11"}), HasSubstr("min_nodes 11 is more than"));
  EXPECT_THAT(refusal({"version=2"}), HasSubstr("use a newer program"));
}

TEST(JobModel, RefusesRatesThatNothingCouldSurvive) {
  EXPECT_THAT(refusal({"nodes=100000", "rates.process=900000"}),
              AllOf(HasSubstr("no job would get on"), HasSubstr("per 1000 days of a node")));
  EXPECT_THAT(refusal({"step_seconds=0.001", "days=3650", "checkpoint.memory_every=1"}),
              HasSubstr("save less often"));
}

}  // namespace
}  // namespace trireme
