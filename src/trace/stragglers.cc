#include "src/trace/stragglers.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>

#include "src/base/median.h"

namespace trireme {
namespace {

// If all ranks are equally fast, a rank that is half a percent off is no outlier.
constexpr double kLeastDeviation = 0.005;

double lower_median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::vector<Slowness> judge_slowness(const std::vector<ComputeTime>& times) {
  std::map<int, std::vector<double>> groups;
  for (const ComputeTime& time : times) {
    groups[time.peers].push_back(time.seconds);
  }
  std::map<int, double> usual;
  for (auto& [peers, seconds] : groups) {
    usual[peers] = lower_median(seconds);
  }
  std::vector<double> ratios;
  for (const ComputeTime& time : times) {
    const double base = usual[time.peers];
    ratios.push_back(base > 0 ? time.seconds / base : 1);
  }
  const double middle = median(ratios);
  std::vector<double> distances;
  for (const double ratio : ratios) {
    distances.push_back(std::abs(ratio - middle));
  }
  const double deviation = std::max(median(distances), kLeastDeviation);
  std::vector<Slowness> judged;
  for (const double ratio : ratios) {
    const double score = 0.6745 * (ratio - middle) / deviation;
    judged.push_back(
        {ratio, score, score > kStragglerScore && ratio > kStragglerSlowness * middle});
  }
  return judged;
}

}  // namespace trireme
