#include "benchmarks/all/budget.h"

#include <algorithm>
#include <numeric>

namespace trireme {

double Budget::share(std::size_t i, double elapsed) const {
  const auto first = weights_.begin() + static_cast<std::ptrdiff_t>(i);
  const double rest = std::accumulate(first, weights_.end(), 0.0);
  return std::max(seconds_ - elapsed, 0.0) * weights_[i] / rest;
}

}  // namespace trireme
