// Tests what a run says about its own steps. Ranks are threads.
#include "src/train/prediction/measured_run.h"

#include <mutex>

#include <gtest/gtest.h>

#include "tests/train/thread_run.h"

namespace trireme {
namespace {

// Returns what each rank of a run was told.
std::vector<MeasuredStep> measured(const std::vector<std::string>& arguments, int ranks) {
  ThreadRun run;
  std::mutex mutex;
  std::vector<MeasuredStep> all;
  run.on_ranks(run.config(arguments), ranks, [&](const RunConfig& config, TrainingHost host) {
    host.measured = [&](const MeasuredStep& step) {
      const std::lock_guard lock(mutex);
      all.push_back(step);
    };
    (void)Training(config, host).run();
  });
  return all;
}

TEST(MeasuredRun, EveryRankGetsTheMeanOfAll) {
  const std::vector<MeasuredStep> all =
      measured({"parallel.pp=2", "model.layers=2", "train.steps=8", "run.name=first"}, 2);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].measured, all[1].measured);
  const MeasuredStep& step = all.front();
  EXPECT_EQ(step.name, "first");
  EXPECT_EQ(step.layout.pp, 2);
  EXPECT_EQ(step.layout.micro_batches, 4);
  EXPECT_EQ(step.model.hidden, 16);
  EXPECT_EQ(step.precision, PlanPrecision::fp32);
  EXPECT_EQ(step.steps, 8 - StepTimings::kWarmup);
  EXPECT_GT(step.measured.compute, 0);
  EXPECT_GT(step.measured.pipeline, 0) << "stages wait for each other";
  EXPECT_EQ(step.measured.tensor, 0);
  EXPECT_GT(step.measured.update, 0);
  EXPECT_GT(step.memory_bytes, 0);
}

TEST(MeasuredRun, AStartOfTooFewStepsSaysNothing) {
  EXPECT_TRUE(measured({"train.steps=2"}, 1).empty());
}

}  // namespace
}  // namespace trireme
