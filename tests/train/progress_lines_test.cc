#include "src/train/report/progress_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

using ::testing::HasSubstr;

TEST(ProgressLines, TheFirstStepSaysHowLongTheRestTakes) {
  ProgressLines lines(0, 2000, 10);
  EXPECT_EQ(lines.after_step(1, 13), "step 1 of 2000: 3.0s per step, about 1h40m left");
  EXPECT_EQ(lines.after_step(2, 16), "");
}

TEST(ProgressLines, OneLineForTheFirstStepIsEnough) {
  ProgressLines lines(0, 2000, 10);
  lines.other_line(13);
  EXPECT_EQ(lines.after_step(1, 13), "");
  EXPECT_EQ(lines.after_step(2, 16), "");
  EXPECT_NE(lines.after_step(20, 43), "");
}

// A step of the first half has ten units of work, one of the second half thirty.
TEST(ProgressLines, StepsToComeMayBeMoreWork) {
  const auto work = [](std::int64_t step) { return step <= 10 ? step : 10 + 3 * (step - 10); };
  ProgressLines lines(5, 20, 0, work);
  EXPECT_EQ(lines.after_step(10, 5), "step 10 of 20: 1.0s per step, about 30s left");
}

TEST(ProgressLines, NoHalfMinuteOfTheBeginningIsSilent) {
  ProgressLines lines(100, 2000, 0);
  EXPECT_NE(lines.after_step(101, 1), "");
  EXPECT_EQ(lines.after_step(110, 30), "");
  EXPECT_THAT(lines.after_step(111, 31), HasSubstr("step 111 of 2000: 2.8s per step"));
  lines.other_line(40);
  EXPECT_EQ(lines.after_step(120, 62), "");
  EXPECT_NE(lines.after_step(130, 70), "");
}

TEST(ProgressLines, ComeSeldomLater) {
  ProgressLines lines(0, 1'000'000, 0);
  int count = 0;
  for (int step = 1; step <= 86'400; ++step) {
    count += lines.after_step(step, step).empty() ? 0 : 1;
  }
  EXPECT_GE(count, 20 + 142);
  EXPECT_LE(count, 21 + 143);
}

TEST(ProgressLines, TheEndSpeaksForItself) {
  ProgressLines lines(0, 1, 0);
  EXPECT_EQ(lines.after_step(1, 100), "");
  ProgressLines resumed(5, 5, 0);
  EXPECT_EQ(resumed.after_step(5, 100), "");
}

}  // namespace
}  // namespace trireme
