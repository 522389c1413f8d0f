#include "src/train/saving/save_schedule.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "src/base/save_interval.h"
#include "src/base/units.h"

namespace trireme {

void SaveSchedule::start(std::int64_t step) { latest_ = step; }

bool SaveSchedule::due(std::int64_t step) const {
  if (is_auto()) {
    return step - latest_ >= interval_;
  }
  return every_.integer > 0 && step % every_.integer == 0;
}

void SaveSchedule::saved(std::int64_t step) { latest_ = step; }

std::optional<std::string> SaveSchedule::learn(const SaveFigures& figures) {
  const double best = best_interval(figures.cost, figures.mtbf);
  const double seconds = std::max({best, figures.least, figures.step});
  interval_ = std::max<std::int64_t>(1, std::llround(seconds / figures.step));
  if (10 * std::abs(interval_ - reported_) < reported_) {
    return std::nullopt;
  }
  reported_ = interval_;
  return fmt::format(
      "every {}, {} (a save costs {:.4g} s and takes {:.4g} s, a step takes {:.4g} s, a failure "
      "is expected every {:.4g} h)",
      counted(interval_, "step"), format_seconds(static_cast<double>(interval_) * figures.step),
      figures.cost, figures.least, figures.step, figures.mtbf / 3600);
}

}  // namespace trireme
