#include "src/train/report/progress_lines.h"

#include <fmt/core.h>

#include "src/base/units.h"

namespace trireme {
namespace {

constexpr double kOftenSeconds = 30;
constexpr double kSeldomSeconds = 600;
constexpr double kBeginningSeconds = 600;  // time for which lines come often

}  // namespace

ProgressLines::ProgressLines(std::int64_t first_step, std::int64_t last_step, double clock,
                             ProgressBar::Work work)
    : first_(first_step),
      last_(last_step),
      begun_(clock),
      last_line_(clock),
      last_own_(clock),
      work_(std::move(work)) {}

std::string ProgressLines::after_step(std::int64_t step, double clock) {
  if (step <= first_ || step >= last_ || !due(clock)) {
    return "";
  }
  has_spoken_ = true;
  last_line_ = last_own_ = clock;
  const double seconds = clock - begun_;
  return fmt::format("step {} of {}: {} per step, about {}", step, last_,
                     format_seconds(seconds / static_cast<double>(step - first_)),
                     time_left_text(work(first_), work(step), work(last_), seconds));
}

bool ProgressLines::due(double clock) const {
  if (!has_spoken_) {
    return true;
  }
  const bool beginning = clock - begun_ < kBeginningSeconds;
  return beginning ? clock - last_line_ >= kOftenSeconds : clock - last_own_ >= kSeldomSeconds;
}

}  // namespace trireme
