#include "src/train/prediction/step_timings.h"

#include <algorithm>

namespace trireme {

void StepTimings::add(const StepResult& result, double seconds) {
  if (++seen_ <= kWarmup) {
    return;
  }
  constexpr double kMilli = 1e-3;
  StepSplit split{.compute = kMilli * result.compute_ms,
                  .tensor = kMilli * result.tensor_wait_ms,
                  .pipeline = kMilli * result.pipeline_wait_ms,
                  .replicas = kMilli * result.comm_exposed_ms,
                  .update = 0,
                  .data = kMilli * result.data_wait_ms,
                  .checkpoint = 0};
  split.update = std::max(0.0, seconds - split.total());
  if (rows_.size() < kMostSteps) {
    rows_.push_back(split);
  } else {
    rows_[static_cast<std::size_t>(seen_) % kMostSteps] = split;
  }
}

StepSplit StepTimings::middle() const {
  std::vector<StepSplit> sorted = rows_;
  std::sort(sorted.begin(), sorted.end(),
            [](const StepSplit& a, const StepSplit& b) { return a.total() < b.total(); });
  const std::size_t quarter = sorted.size() / 4;
  std::array<double, StepSplit::kParts> sums{};
  for (std::size_t i = quarter; i < sorted.size() - quarter; ++i) {
    const auto parts = sorted[i].parts();
    for (std::size_t part = 0; part < sums.size(); ++part) {
      sums[part] += parts[part];
    }
  }
  for (double& sum : sums) {
    sum /= static_cast<double>(sorted.size() - 2 * quarter);
  }
  StepSplit mean = StepSplit::of(sums);
  mean.checkpoint = stalls_ / static_cast<double>(std::max<std::int64_t>(seen_, 1));
  return mean;
}

}  // namespace trireme
