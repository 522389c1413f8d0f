#include "benchmarks/all/budget.h"

#include <algorithm>
#include <numeric>

namespace trireme {

double Budget::share(std::size_t i, double elapsed) const {
  const auto first = weights_.begin() + static_cast<std::ptrdiff_t>(i);
  const double rest = std::accumulate(first, weights_.end(), 0.0);
  return std::max(seconds_ - elapsed, 0.0) * weights_[i] / rest;
}

double Budget::planned(std::size_t i) const {
  return seconds_ * weights_[i] / std::accumulate(weights_.begin(), weights_.end(), 0.0);
}

double Budget::for_sizes(std::size_t i, double elapsed) const {
  constexpr double kMuchLess = 0.25;
  const double left = share(i, elapsed);
  return left < kMuchLess * planned(i) ? left : planned(i);
}

double largest_rung(const std::vector<double>& ladder, double most) {
  double chosen = ladder.front();
  for (const double rung : ladder) {
    chosen = rung <= most ? rung : chosen;
  }
  return chosen;
}

}  // namespace trireme
