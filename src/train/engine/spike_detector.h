// The spike detector: whether a step's loss or gradient norm stands out from those of the steps
// before. It judges by the modified z-score (Iglewicz and Hoaglin, How to Detect and Handle
// Outliers, 1993, section 3.3), which outliers among the steps before do not move:
//
//   score(x) = (x - median) / max(MAD / 0.6745, floor)        MAD: median of |x_i - median|
//
// x is the loss, with a floor of 1 % of the median, and the natural logarithm of the norm, with a
// floor of 0.1, that is about 10 %: norms are spread over a ratio, not over a distance. Only what
// lies above counts. Others take mean and deviation: OLMo-core's SkipStepOptimizer leaves out steps
// 6 deviations above the mean of 128, ZClip (arXiv 2504.02507) clips what is 2.5 above a running
// mean. Pure functions over values that are the same on all ranks and in all layouts of one set of
// bits; the history is part of each checkpoint, so that a run that goes on elsewhere judges alike.
#pragma once

#include <cstdint>
#include <vector>

namespace trireme {

// The newest last, of steps whose update was made; as many of one as of the other.
struct SpikeHistory {
  std::vector<double> losses;
  std::vector<double> norms;  // above 0
  friend bool operator==(const SpikeHistory&, const SpikeHistory&) = default;
};

// How far a step stands out, in deviations; 0 while the history is too short.
struct SpikeScores {
  double loss = 0;
  double norm = 0;
};

// Scores of finite values, once the history holds half of `window` steps.
SpikeScores spike_scores(const SpikeHistory& history, std::int64_t window, double loss,
                         double norm);
// Takes a step's finite values in, and lets go of what lies before the window.
void remember(SpikeHistory& history, std::int64_t window, double loss, double norm);

}  // namespace trireme
