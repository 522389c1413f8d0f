// The spike detector scores how far a step's loss and gradient norm are above those of the steps
// before. It uses the modified z-score (Iglewicz and Hoaglin, How to Detect and Handle Outliers,
// 1993, section 3.3), which is robust against outliers among those steps:
//
//   score(x) = (x - median) / max(MAD / 0.6745, floor)        MAD: median of |x_i - median|
//
// x is the loss, with a floor of 1 % of the median, or the natural logarithm of the norm, with a
// floor of 0.1, which is about 10 %: norms vary by factors. Only values above the median count as
// spikes. Others use mean and deviation: OLMo-core's SkipStepOptimizer leaves out steps 6
// deviations above the mean of 128, ZClip (arXiv 2504.02507) clips what is 2.5 above a running
// mean. Pure functions of values that are the same on all ranks, and in all layouts that give the
// same bits. The history is part of each checkpoint, so that a resumed run decides as an
// uninterrupted one does.
#pragma once

#include <cstdint>
#include <vector>

namespace trireme {

// SpikeHistory holds the losses and norms of the latest steps with an update, the newest last. Both
// have the same length.
struct SpikeHistory {
  std::vector<double> losses;
  std::vector<double> norms;  // not negative
  friend bool operator==(const SpikeHistory&, const SpikeHistory&) = default;
};

// SpikeScores holds the scores of a step, in deviations; 0 while the history is too short.
struct SpikeScores {
  double loss = 0;
  double norm = 0;
};

// Returns the scores of finite values; 0 if the history holds fewer than half of `window` steps.
SpikeScores spike_scores(const SpikeHistory& history, std::int64_t window, double loss,
                         double norm);
// Adds a step's finite values, and drops those of steps before the window.
void remember(SpikeHistory& history, std::int64_t window, double loss, double norm);

}  // namespace trireme
