#include "src/train/saving/save_schedule.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/save_interval.h"

namespace trireme {
namespace {

TEST(SaveSchedule, CountsSteps) {
  SaveSchedule schedule({5, ""});
  schedule.start(12);
  EXPECT_FALSE(schedule.due(12));
  EXPECT_FALSE(schedule.due(14));
  EXPECT_TRUE(schedule.due(15));
  schedule.saved(15);
  EXPECT_TRUE(schedule.due(20));
  SaveSchedule off({0, ""});
  EXPECT_FALSE(off.due(0));
  EXPECT_FALSE(off.due(1000));
}

TEST(SaveSchedule, AutoMeasuresFirst) {
  SaveSchedule schedule({0, "auto"});
  schedule.start(100);
  EXPECT_FALSE(schedule.due(107));
  EXPECT_TRUE(schedule.due(108));
  schedule.saved(108);
  const auto reported = schedule.learn({.cost = 0.5, .least = 3, .step = 0.25, .mtbf = 3600});
  ASSERT_TRUE(reported.has_value());
  EXPECT_EQ(schedule.interval(), std::llround(best_interval(0.5, 3600) / 0.25));
  EXPECT_THAT(*reported, testing::AllOf(testing::HasSubstr(std::to_string(schedule.interval())),
                                        testing::HasSubstr("a save costs 0.5 s"),
                                        testing::HasSubstr("a failure is expected every 1 h")));
  EXPECT_FALSE(schedule.due(108 + schedule.interval() - 1));
  EXPECT_TRUE(schedule.due(108 + schedule.interval()));
  // A nearly equal interval is not reported again; after a change of the step time by 2, it is.
  EXPECT_FALSE(schedule.learn({.cost = 0.501, .least = 3, .step = 0.25, .mtbf = 3600}));
  EXPECT_TRUE(schedule.learn({.cost = 0.5, .least = 3, .step = 0.5, .mtbf = 3600}));
}

// A save that costs nothing is due when the one before has ended, but at least a step later.
TEST(SaveSchedule, AutoLeavesTimeForTheSave) {
  SaveSchedule schedule({0, "auto"});
  schedule.start(0);
  (void)schedule.learn({.cost = 1e-9, .least = 10, .step = 0.5, .mtbf = 60});
  EXPECT_EQ(schedule.interval(), 20);
  (void)schedule.learn({.cost = 1e-9, .least = 0, .step = 5, .mtbf = 60});
  EXPECT_EQ(schedule.interval(), 1);
}

}  // namespace
}  // namespace trireme
