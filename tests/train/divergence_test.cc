#include "src/train/engine/divergence.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

using testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

DivergenceConfig policy(const std::string& not_finite, const std::string& spike) {
  DivergenceConfig config;
  config.not_finite = not_finite;
  config.spike = spike;
  config.window = 8;
  return config;
}

// Returns counters after ten quiet steps.
TrainingCounters begun() {
  TrainingCounters counters;
  counters.step = 10;
  for (int i = 0; i < 10; ++i) {
    remember(counters.history, 8, 3 + 0.01 * (i % 3), 1);
  }
  return counters;
}

TEST(Divergence, EachWordHasItsResponse) {
  const TrainingCounters counters = begun();
  const std::vector<std::pair<std::string, Response>> words = {{"ignore", Response::update},
                                                               {"warn", Response::warn},
                                                               {"skip", Response::skip},
                                                               {"rewind", Response::rewind},
                                                               {"stop", Response::stop}};
  for (const auto& [word, response] : words) {
    EXPECT_EQ(judge(policy("skip", word), counters, 9, 1).response, response) << word;
    EXPECT_EQ(judge(policy("skip", word), counters, 3, 1e9).response, response) << word;
    EXPECT_EQ(judge(policy("skip", word), counters, 3, 1).response, Response::update) << word;
    if (response != Response::update && response != Response::warn) {
      EXPECT_EQ(judge(policy(word, "ignore"), counters, std::nan(""), 1).response, response);
      EXPECT_EQ(judge(policy(word, "warn"), counters, 3, kInfinity).response, response);
    }
  }
}

TEST(Divergence, SaysWhatStoodOut) {
  const TrainingCounters counters = begun();
  EXPECT_THAT(judge(policy("skip", "warn"), counters, 9, 1).what,
              HasSubstr("loss 9, 1"));  // 1xx deviations
  EXPECT_THAT(judge(policy("skip", "warn"), counters, 9, 1).what,
              HasSubstr("deviations above the median; gradient norm 1"));
  EXPECT_THAT(judge(policy("skip", "warn"), counters, std::nan(""), kInfinity).what,
              HasSubstr("loss nan, gradient norm inf"));
  EXPECT_FALSE(judge(policy("skip", "warn"), counters, std::nan(""), 1).finite);
}

TEST(Divergence, WhatIsNotUpdatedIsNotRemembered) {
  const DivergenceConfig config = policy("skip", "skip");
  TrainingCounters counters = begun();
  const SpikeHistory before = counters.history;
  note_judged(config, judge(config, counters, 9, 1), 9, 1, counters);
  note_judged(config, judge(config, counters, std::nan(""), 1), std::nan(""), 1, counters);
  EXPECT_EQ(counters.history, before);
  EXPECT_EQ(counters.skipped_steps, 2);
  EXPECT_EQ(counters.skipped_in_a_row, 2);
  note_judged(config, judge(config, counters, 3, 1), 3, 1, counters);
  EXPECT_EQ(counters.skipped_steps, 2);
  EXPECT_EQ(counters.skipped_in_a_row, 0);
  EXPECT_EQ(counters.history.losses.back(), 3);
}

TEST(Divergence, AWarningIsRememberedSoThatANewLevelIsOne) {
  const DivergenceConfig config = policy("skip", "warn");
  TrainingCounters counters = begun();
  int warned = 0;
  for (int i = 0; i < 20; ++i) {
    const Judgement judgement = judge(config, counters, 9, 1);
    warned += judgement.response == Response::warn ? 1 : 0;
    note_judged(config, judgement, 9, 1, counters);
  }
  EXPECT_GE(warned, 3);
  EXPECT_LE(warned, 5);
}

TEST(Divergence, IgnoredNothingIsKept) {
  TrainingCounters counters;
  const DivergenceConfig config = policy("skip", "ignore");
  note_judged(config, judge(config, counters, 3, 1), 3, 1, counters);
  EXPECT_TRUE(counters.history.losses.empty());
}

}  // namespace
}  // namespace trireme
