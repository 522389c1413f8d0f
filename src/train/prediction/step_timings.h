// StepTimings remembers where the time of a rank's steps went, to compare it with a prediction.
// Owned by the training loop; its thread only.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "src/plan/measured_step.h"
#include "src/train/engine/train_step.h"

namespace trireme {

class StepTimings {
 public:
  // Steps at a start that do not count: memory is allocated and products are prepared in them.
  static constexpr std::int64_t kWarmup = 2;
  // The number of steps that are kept; in longer runs, the last ones.
  static constexpr std::size_t kMostSteps = 20'000;

  // seconds: of the step, from begin to end, without evaluations and saves.
  void add(const StepResult& result, double seconds);
  void add_stall(double seconds) { stalls_ += seconds; }

  std::int64_t steps() const { return static_cast<std::int64_t>(rows_.size()); }
  // Returns the mean of the middle half of the steps, sorted by their time, so that neither noise
  // nor a few slow steps count; of stalls, the mean of all steps. Precondition: steps() > 0.
  StepSplit middle() const;

 private:
  std::vector<StepSplit> rows_;  // a ring once it is full
  std::int64_t seen_ = 0;
  double stalls_ = 0;
};

}  // namespace trireme
