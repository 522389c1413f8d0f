#include "src/train/engine/loss_scale.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace trireme {
namespace {

constexpr double kOverflow = std::numeric_limits<double>::infinity();

TrainConfig half_precision() {
  TrainConfig config;
  config.precision = "fp16";
  config.loss_scale = {.initial = 1024, .minimum = 256, .maximum = 2048, .growth_interval = 3};
  return config;
}

// Changes the counters as a step with this loss and norm does, under the default policies.
Judgement step(const TrainConfig& config, TrainingCounters& counters, double loss, double norm) {
  const DivergenceConfig policy;
  const auto overflow = judge_overflow(config, counters, loss, norm);
  const Judgement judgement = overflow ? *overflow : judge(policy, counters, loss, norm);
  ++counters.step;
  note_judged(policy, judgement, loss, norm, counters);
  adapt_loss_scale(config, judgement, std::isfinite(norm), counters);
  return judgement;
}

TEST(LossScale, IsOneInOtherPrecisions) {
  TrainConfig config = half_precision();
  TrainingCounters counters;
  EXPECT_EQ(loss_scale(config, counters), 1024);
  for (const char* precision : {"bf16", "fp32"}) {
    config.precision = precision;
    EXPECT_EQ(loss_scale(config, counters), 1);
    EXPECT_EQ(step(config, counters, 3, kOverflow).response, Response::skip);
    EXPECT_EQ(counters.loss_scale, LossScale{});
    EXPECT_EQ(at_loss_scale(config, counters), "");
  }
}

TEST(LossScale, AnOverflowIsSkippedAndHalvesIt) {
  const TrainConfig config = half_precision();
  TrainingCounters counters;
  for (const double norm : {kOverflow, std::nan("")}) {
    const Judgement judgement = step(config, counters, 3, norm);
    EXPECT_EQ(judgement.response, Response::lower_scale);
    EXPECT_FALSE(judgement.updates());
    EXPECT_FALSE(judgement.breaks_off());
  }
  EXPECT_EQ(loss_scale(config, counters), 256);
  EXPECT_EQ(counters.loss_scale.overflows, 2);
  EXPECT_EQ(counters.skipped_steps, 2);
  EXPECT_EQ(counters.skipped_in_a_row, 0) << "it is no sign of divergence";
  EXPECT_TRUE(counters.history.losses.empty());
}

TEST(LossScale, AtTheMinimumThePolicyDecides) {
  const TrainConfig config = half_precision();
  TrainingCounters counters;
  counters.loss_scale.scale = 256;
  EXPECT_EQ(step(config, counters, 3, kOverflow).response, Response::skip);
  EXPECT_EQ(step(config, counters, 3, kOverflow).response, Response::skip);
  EXPECT_EQ(counters.skipped_in_a_row, 2);
  EXPECT_EQ(counters.loss_scale.overflows, 0);
  EXPECT_EQ(loss_scale(config, counters), 256);
  EXPECT_EQ(at_loss_scale(config, counters), " at loss scale 256");
}

TEST(LossScale, DoesNotExplainALossThatIsNotFinite) {
  const TrainConfig config = half_precision();
  TrainingCounters counters;
  EXPECT_EQ(step(config, counters, std::nan(""), std::nan("")).response, Response::skip);
  EXPECT_EQ(loss_scale(config, counters), 1024);
}

TEST(LossScale, GrowsAfterStepsWithoutOverflow) {
  const TrainConfig config = half_precision();
  TrainingCounters counters;
  std::vector<double> scales;
  for (const double norm : {1.0, 1.0, kOverflow, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0}) {
    scales.push_back(loss_scale(config, counters));
    step(config, counters, 3, norm);
  }
  EXPECT_EQ(scales, (std::vector<double>{1024, 1024, 1024, 512, 512, 512, 1024, 1024, 1024, 2048,
                                         2048, 2048}));
  EXPECT_EQ(loss_scale(config, counters), 2048) << "the maximum";
}

TEST(LossScale, AFixedOneNeverChanges) {
  TrainConfig config = half_precision();
  config.loss_scale.growth_interval = 0;
  TrainingCounters counters;
  for (int i = 0; i < 10; ++i) {
    step(config, counters, 3, 1);
  }
  EXPECT_EQ(step(config, counters, 3, kOverflow).response, Response::skip);
  EXPECT_EQ(loss_scale(config, counters), 1024);
}

// A checkpoint's scale may lie outside the limits of the run that resumes it.
TEST(LossScale, StaysWithinTheLimits) {
  const TrainConfig config = half_precision();
  TrainingCounters counters;
  counters.loss_scale.scale = 65536;
  EXPECT_EQ(loss_scale(config, counters), 2048);
  counters.loss_scale.scale = 1;
  EXPECT_EQ(loss_scale(config, counters), 256);
}

}  // namespace
}  // namespace trireme
