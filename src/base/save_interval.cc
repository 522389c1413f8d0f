#include "src/base/save_interval.h"

#include <cmath>

namespace trireme {

double best_interval(double save_seconds, double mtbf_seconds) {
  const double ratio = save_seconds / (2 * mtbf_seconds);
  if (ratio >= 1) {
    return mtbf_seconds;
  }
  const double young = std::sqrt(2 * save_seconds * mtbf_seconds);
  return young * (1 + std::sqrt(ratio) / 3 + ratio / 9) - save_seconds;
}

}  // namespace trireme
