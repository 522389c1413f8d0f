#include "benchmarks/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "benchmarks/report.h"
#include "src/base/check.h"

namespace trireme {

MedianInterval median_interval(std::vector<double> values) {
  check(!values.empty(), "a median needs a value");
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  const double spread = 1.96 * std::sqrt(n);
  const double low = std::max(std::floor((n - spread) / 2), 1.0);
  const double high = std::min(std::ceil(1 + (n + spread) / 2), n);
  return {median(values), values[static_cast<std::size_t>(low) - 1],
          values[static_cast<std::size_t>(high) - 1]};
}

std::vector<double> robust_scores(const std::vector<double>& values) {
  if (values.empty()) {
    return {};
  }
  const double middle = median(values);
  std::vector<double> distances;
  for (const double value : values) {
    distances.push_back(std::abs(value - middle));
  }
  const double total = std::accumulate(distances.begin(), distances.end(), 0.0);
  const double mad = median(distances);
  const double deviation =
      mad > 0 ? mad / 0.6745 : 1.2533 * total / static_cast<double>(values.size());
  std::vector<double> scores;
  for (const double value : values) {
    scores.push_back(deviation > 0 ? (value - middle) / deviation : 0);
  }
  return scores;
}

}  // namespace trireme
