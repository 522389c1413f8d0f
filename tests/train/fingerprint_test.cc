#include "src/train/run/fingerprint.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/fingerprint.h"

namespace trireme {
namespace {

RunConfig run_of(ScheduleKind kind) {
  RunConfig config;
  config.optimizer.schedule = {
      .kind = kind, .lr = 1, .min_lr = 0.25, .warmup = 10, .steps = 100, .decay = 20};
  return config;
}

nlohmann::json fingerprint_of(const RunConfig& config) {
  return config_fingerprint(config, "digest", "tokenizer");
}

bool same_rates(const Schedule& a, const Schedule& b) {
  for (std::int64_t step = 0; step < 200; ++step) {
    if (learning_rate(a, step) != learning_rate(b, step)) {
      return false;
    }
  }
  return true;
}

TEST(Fingerprint, AFieldHasNoEffectWhereNoLearningRateDependsOnIt) {
  for (const auto kind : {ScheduleKind::constant, ScheduleKind::linear, ScheduleKind::cosine,
                          ScheduleKind::warmup_stable_decay, ScheduleKind::inverse_sqrt}) {
    const RunConfig run = run_of(kind);
    const std::vector<std::string> unused =
        fields_without_effect(fingerprint_of(run), fingerprint_of(run));
    const auto expect_right = [&](const char* name, const Schedule& changed) {
      const bool found = std::ranges::count(unused, std::string("optimizer.schedule.") + name) > 0;
      EXPECT_EQ(found, same_rates(run.optimizer.schedule, changed))
          << schedule_name(kind) << " " << name;
    };
    Schedule changed = run.optimizer.schedule;
    changed.steps = 150;
    expect_right("steps", changed);
    changed = run.optimizer.schedule;
    changed.decay = 30;
    expect_right("decay", changed);
    changed = run.optimizer.schedule;
    changed.min_lr = 0.5;
    expect_right("min_lr", changed);
    changed = run.optimizer.schedule;
    changed.warmup = 20;
    expect_right("warmup", changed);
  }
}

TEST(Fingerprint, ARunWithoutARampGoesOnFromOlderCheckpoints) {
  RunConfig run = run_of(ScheduleKind::constant);
  nlohmann::json older = fingerprint_of(run);
  for (const char* key : {"from", "by", "every"}) {
    older.erase(std::string("train.batch_ramp.") + key);
  }
  EXPECT_EQ(with_later_fields(older), fingerprint_of(run));
  run.train.batch_ramp = {4, 4, 10};
  EXPECT_EQ(differences(with_later_fields(older), fingerprint_of(run)).size(), 3U);
}

TEST(Fingerprint, AnotherKindOfScheduleMakesNoFieldUnused) {
  const auto unused = fields_without_effect(fingerprint_of(run_of(ScheduleKind::constant)),
                                            fingerprint_of(run_of(ScheduleKind::inverse_sqrt)));
  EXPECT_TRUE(unused.empty());
}

TEST(Fingerprint, FloatsAreShownInTheirShortestForm) {
  RunConfig config;
  config.optimizer.schedule.lr = config.optimizer.lr = 3e-4F;
  config.optimizer.eps = 1e-8F;
  const nlohmann::json shown = readable_numbers(fingerprint_of(config));
  EXPECT_EQ(shown["optimizer.lr"].dump(), "0.0003");
  EXPECT_EQ(shown["optimizer.eps"].dump(), "1e-08");
  EXPECT_EQ(shown["optimizer.betas"].dump(), "[0.9,0.95]");
  EXPECT_EQ(readable_numbers({{"loss", 0.1}, {"not_finite", NAN}}).dump(),
            R"({"loss":0.1,"not_finite":null})");
}

}  // namespace
}  // namespace trireme
