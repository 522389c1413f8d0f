#include "src/train/engine/spike_detector.h"

#include <cmath>

#include <gtest/gtest.h>

#include "src/base/philox.h"

namespace trireme {
namespace {

constexpr std::int64_t kWindow = 32;

// Returns numbers in [-1, 1].
double noise(std::uint32_t i) {
  return 2 * static_cast<double>(uniform_float(philox({i, 0}, philox_key(5))[0])) - 1;
}

double loss_at(std::uint32_t i) { return 3 + 0.05 * noise(i); }
double norm_at(std::uint32_t i) { return std::exp(0.2 * noise(1000 + i)); }

SpikeHistory quiet(std::uint32_t steps) {
  SpikeHistory history;
  for (std::uint32_t i = 0; i < steps; ++i) {
    remember(history, kWindow, loss_at(i), norm_at(i));
  }
  return history;
}

TEST(SpikeDetector, IsTheModifiedZScore) {
  // The median is 3, the distances are 2 1 0 1 2, and the MAD is 1.
  const SpikeHistory history{{1, 2, 3, 4, 5}, std::vector<double>(5, 1.0)};
  const SpikeScores scores = spike_scores(history, 8, 6, std::exp(0.5));
  EXPECT_DOUBLE_EQ(scores.loss, 3 * 0.6745);
  // All norms are alike, so the lower bound of the deviation counts.
  EXPECT_DOUBLE_EQ(scores.norm, 5);
}

TEST(SpikeDetector, KnowsNothingBeforeHalfAWindow) {
  EXPECT_EQ(spike_scores(quiet(kWindow / 2 - 1), kWindow, 1000, 1000).loss, 0);
  EXPECT_GT(spike_scores(quiet(kWindow / 2), kWindow, 1000, 1000).loss, 100);
}

TEST(SpikeDetector, PassesOverNoiseAndADescent) {
  SpikeHistory history;
  for (std::uint32_t i = 0; i < 5000; ++i) {
    const double loss = 8 * std::pow(1.0 + i, -0.1) * (1 + 0.02 * noise(i));
    const double norm = norm_at(i);
    const SpikeScores scores = spike_scores(history, kWindow, loss, norm);
    EXPECT_LT(scores.loss, 8) << i;
    EXPECT_LT(scores.norm, 8) << i;
    remember(history, kWindow, loss, norm);
  }
}

TEST(SpikeDetector, SeesEitherOfBoth) {
  const SpikeHistory history = quiet(100);
  EXPECT_GT(spike_scores(history, kWindow, 4, 1).loss, 8);
  EXPECT_LT(spike_scores(history, kWindow, 4, 1).norm, 8);
  EXPECT_GT(spike_scores(history, kWindow, 3, 10).norm, 8);
  EXPECT_LT(spike_scores(history, kWindow, 3, 10).loss, 8);
}

TEST(SpikeDetector, IsNotMovedByOtherSpikes) {
  SpikeHistory history = quiet(100);
  for (int i = 0; i < 10; ++i) {
    remember(history, kWindow, 1e6, 1e6);
  }
  EXPECT_GT(spike_scores(history, kWindow, 4, 10).loss, 8);
}

TEST(SpikeDetector, LowValuesAreNoSpikes) {
  const SpikeScores scores = spike_scores(quiet(100), kWindow, 0, 0);
  EXPECT_LT(scores.loss, 0);
  EXPECT_LT(scores.norm, 0);
}

TEST(SpikeDetector, LossesOfZeroAreNoTrouble) {
  const SpikeHistory zeros{std::vector<double>(40, 0.0), std::vector<double>(40, 0.0)};
  const SpikeScores same = spike_scores(zeros, kWindow, 0, 0);
  EXPECT_EQ(same.loss, 0);
  EXPECT_EQ(same.norm, 0);
  EXPECT_GT(spike_scores(zeros, kWindow, 0.1, 0.1).norm, 8);
}

TEST(SpikeDetector, RemembersAWindow) {
  const SpikeHistory history = quiet(100);
  ASSERT_EQ(history.losses.size(), static_cast<std::size_t>(kWindow));
  ASSERT_EQ(history.norms.size(), history.losses.size());
  EXPECT_EQ(history.losses.back(), loss_at(99));
  EXPECT_EQ(history.norms.front(), norm_at(100 - kWindow));
  // The window is shorter than in the start before.
  SpikeHistory shorter = history;
  remember(shorter, 8, 1, 2);
  EXPECT_EQ(shorter.losses.size(), 8U);
  EXPECT_EQ(shorter.norms.back(), 2);
}

}  // namespace
}  // namespace trireme
