#include "src/train/engine/spike_detector.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/base/median.h"

namespace trireme {
namespace {

constexpr double kNormalMad = 0.6745;  // MAD of the standard normal distribution
constexpr double kLossFloor = 0.01;    // fraction of the median
constexpr double kLogNormFloor = 0.1;

// Returns score(x) as defined in spike_detector.h.
double score(const std::vector<double>& values, double x, double floor) {
  const double middle = median(values);
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) {
    distances.push_back(std::abs(value - middle));
  }
  return (x - middle) / std::max(median(std::move(distances)) / kNormalMad, floor);
}

// Replaces 0, which has no logarithm, by the smallest positive number.
double log_of(double norm) { return std::log(std::max(norm, std::numeric_limits<double>::min())); }

void keep(std::vector<double>& values, std::int64_t window, double value) {
  values.push_back(value);
  const auto size = static_cast<std::int64_t>(values.size());
  values.erase(values.begin(), values.begin() + std::max<std::int64_t>(size - window, 0));
}

}  // namespace

SpikeScores spike_scores(const SpikeHistory& history, std::int64_t window, double loss,
                         double norm) {
  if (2 * static_cast<std::int64_t>(history.losses.size()) < window) {
    return {};
  }
  std::vector<double> logs;
  logs.reserve(history.norms.size());
  for (const double each : history.norms) {
    logs.push_back(log_of(each));
  }
  const double loss_floor = kLossFloor * std::abs(median(history.losses));
  return {score(history.losses, loss, std::max(loss_floor, std::numeric_limits<double>::min())),
          score(logs, log_of(norm), kLogNormFloor)};
}

void remember(SpikeHistory& history, std::int64_t window, double loss, double norm) {
  keep(history.losses, window, loss);
  keep(history.norms, window, norm);
}

}  // namespace trireme
