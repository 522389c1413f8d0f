#include "src/optim/schedule.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

Schedule schedule(ScheduleKind kind) {
  Schedule s;
  s.kind = kind;
  s.lr = 1.0;
  s.min_lr = 0.1;
  s.warmup = 4;
  s.steps = 20;
  s.decay = 6;
  return s;
}

TEST(ScheduleTest, AllWarmUpLinearlyToThePeak) {
  for (const auto kind : {ScheduleKind::constant, ScheduleKind::linear, ScheduleKind::cosine,
                          ScheduleKind::warmup_stable_decay, ScheduleKind::inverse_sqrt}) {
    const Schedule s = schedule(kind);
    s.validate();
    EXPECT_DOUBLE_EQ(learning_rate(s, 0), 0.25);
    EXPECT_DOUBLE_EQ(learning_rate(s, 2), 0.75);
    EXPECT_DOUBLE_EQ(learning_rate(s, 3), 1.0);
    EXPECT_DOUBLE_EQ(learning_rate(s, 4),
                     kind == ScheduleKind::inverse_sqrt ? std::sqrt(4.0 / 5) : 1.0);
    Schedule cold = s;
    cold.warmup = 0;
    EXPECT_DOUBLE_EQ(learning_rate(cold, 0), 1.0);
    EXPECT_EQ(parse_schedule(schedule_name(kind)), kind);
  }
}

TEST(ScheduleTest, DecaysAsItsNameSays) {
  EXPECT_DOUBLE_EQ(learning_rate(schedule(ScheduleKind::inverse_sqrt), 15), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(schedule(ScheduleKind::inverse_sqrt), 99), 0.2);
  // The rate does not fall below min_lr.
  EXPECT_DOUBLE_EQ(learning_rate(schedule(ScheduleKind::inverse_sqrt), 100000), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(schedule(ScheduleKind::constant), 19), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(schedule(ScheduleKind::constant), 1000), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(schedule(ScheduleKind::linear), 12), 0.55);
  EXPECT_DOUBLE_EQ(learning_rate(schedule(ScheduleKind::cosine), 12), 0.55);
  // A quarter of the decay gives 0.1 + 0.9 (1 + cos(pi/4)) / 2.
  EXPECT_NEAR(learning_rate(schedule(ScheduleKind::cosine), 8), 0.868198, 1e-6);
  EXPECT_DOUBLE_EQ(learning_rate(schedule(ScheduleKind::warmup_stable_decay), 14), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(schedule(ScheduleKind::warmup_stable_decay), 17), 0.55);
  for (const auto kind :
       {ScheduleKind::linear, ScheduleKind::cosine, ScheduleKind::warmup_stable_decay}) {
    double last = 1;
    for (std::int64_t step = 4; step < 20; ++step) {
      const double lr = learning_rate(schedule(kind), step);
      EXPECT_LE(lr, last);
      EXPECT_GT(lr, 0.1);
      last = lr;
    }
    EXPECT_DOUBLE_EQ(learning_rate(schedule(kind), 20), 0.1);
    EXPECT_DOUBLE_EQ(learning_rate(schedule(kind), 100000), 0.1);
  }
}

TEST(ScheduleTest, RefusesWhatCannotBe) {
  const auto refused = [](auto change) {
    Schedule s = schedule(ScheduleKind::warmup_stable_decay);
    change(s);
    EXPECT_THROW(s.validate(), ConfigError);
  };
  refused([](Schedule& s) { s.min_lr = 2; });
  refused([](Schedule& s) { s.lr = -1; });
  refused([](Schedule& s) { s.warmup = -1; });
  refused([](Schedule& s) { s.warmup = 15; });
  EXPECT_THROW(parse_schedule("sawtooth"), ConfigError);
}

}  // namespace
}  // namespace trireme
