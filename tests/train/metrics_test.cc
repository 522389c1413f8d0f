#include "src/train/report/metrics.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

using testing::HasSubstr;
using testing::Not;

StepMetrics step_of(std::int64_t step) {
  StepMetrics m;
  m.step = step;
  m.global_batch = 12;
  m.samples = 345;
  m.tokens_per_s = 50;
  m.tokens_left = 6000;
  m.step_ms = 1000;
  return m;
}

// The steps to come may have larger batches than those of the last lines: tokens tell the time.
TEST(StepLines, TheTimeLeftIsThatOfTheTokensLeft) {
  const MetricsPlan plan{0, 40, BatchSchedule(16, {4, 4, 10})};
  EXPECT_THAT(plain_step_line(step_of(30), plan), HasSubstr("  2m00s left  "));
  EXPECT_THAT(plain_step_line(step_of(40), plan), Not(HasSubstr("left")));
  StepMetrics resumed = step_of(30);
  resumed.tokens_per_s = std::nan("");
  EXPECT_THAT(plain_step_line(resumed, plan), Not(HasSubstr("left")));
}

TEST(StepLines, MegatronsLineHasTheBatchOfTheStep) {
  const MetricsPlan plan{0, 40, BatchSchedule(16, {4, 4, 10})};
  EXPECT_THAT(megatron_step_line(step_of(30), plan),
              testing::AllOf(HasSubstr("global batch size:    12 |"),
                             HasSubstr("consumed samples:          345 |")));
}

TEST(MetricsPlan, CountsTheWorkOfSteps) {
  const MetricsPlan plan{0, 40, BatchSchedule(16, {4, 4, 10}), 5};
  EXPECT_EQ(plan.samples_before(10) - plan.samples_before(0), 5 * 4 + 5 * 8);
}

}  // namespace
}  // namespace trireme
