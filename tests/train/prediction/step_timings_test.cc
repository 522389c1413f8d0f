#include "src/train/prediction/step_timings.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

StepResult result(double compute_ms, double data_ms = 0) {
  StepResult step;
  step.compute_ms = compute_ms;
  step.data_wait_ms = data_ms;
  step.comm_exposed_ms = 3;
  step.tensor_wait_ms = 2;
  step.pipeline_wait_ms = 1;
  return step;
}

TEST(StepTimings, WhatIsNotMeasuredApartIsTheUpdate) {
  StepTimings timings;
  for (int i = 0; i < StepTimings::kWarmup + 1; ++i) {
    timings.add(result(10, 4), 0.025);
  }
  EXPECT_EQ(timings.steps(), 1);
  const StepSplit split = timings.middle();
  EXPECT_DOUBLE_EQ(split.compute, 0.010);
  EXPECT_DOUBLE_EQ(split.replicas, 0.003);
  EXPECT_DOUBLE_EQ(split.tensor, 0.002);
  EXPECT_DOUBLE_EQ(split.pipeline, 0.001);
  EXPECT_DOUBLE_EQ(split.data, 0.004);
  EXPECT_DOUBLE_EQ(split.update, 0.005);
  EXPECT_DOUBLE_EQ(split.total(), 0.025);
}

TEST(StepTimings, TheStartDoesNotCount) {
  StepTimings timings;
  for (int i = 0; i < StepTimings::kWarmup; ++i) {
    timings.add(result(1000), 1.5);
  }
  EXPECT_EQ(timings.steps(), 0);
  timings.add(result(10), 0.02);
  EXPECT_DOUBLE_EQ(timings.middle().total(), 0.02);
}

TEST(StepTimings, FastAndSlowStepsDoNotCount) {
  StepTimings timings;
  for (int i = 0; i < StepTimings::kWarmup; ++i) {
    timings.add(result(10), 0.02);
  }
  for (const double seconds : {0.001, 9.0, 0.022, 0.020, 0.5, 0.002, 0.021, 0.023}) {
    timings.add(result(10), seconds);
  }
  EXPECT_DOUBLE_EQ(timings.middle().total(), (0.020 + 0.021 + 0.022 + 0.023) / 4);
}

TEST(StepTimings, StallsAreSharedByAllSteps) {
  StepTimings timings;
  for (int i = 0; i < 10; ++i) {
    timings.add(result(10), 0.02);
  }
  timings.add_stall(0.5);
  EXPECT_DOUBLE_EQ(timings.middle().checkpoint, 0.05);
}

TEST(StepTimings, TheLastStepsOfALongRunCount) {
  StepTimings timings;
  for (std::size_t i = 0; i < StepTimings::kMostSteps; ++i) {
    timings.add(result(10), 5);
  }
  for (std::size_t i = 0; i < StepTimings::kMostSteps; ++i) {
    timings.add(result(10), 0.02);
  }
  EXPECT_EQ(timings.steps(), static_cast<std::int64_t>(StepTimings::kMostSteps));
  EXPECT_NEAR(timings.middle().total(), 0.02, 1e-12);
}

}  // namespace
}  // namespace trireme
