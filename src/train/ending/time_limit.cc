#include "src/train/ending/time_limit.h"

#include <algorithm>

namespace trireme {
namespace {

constexpr double kSlackSeconds = 30;
constexpr double kBytesPerSecond = 100e6;

double seconds(TimeLimit::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

double TimeLimit::margin_seconds(double save_seconds, std::int64_t save_bytes) const {
  if (fixed_) {
    return *fixed_;
  }
  const double save =
      save_seconds > 0 ? save_seconds : static_cast<double>(save_bytes) / kBytesPerSecond;
  return 2 * longest_step_ + 2 * save + kSlackSeconds;
}

bool TimeLimit::reached(Clock::time_point now, double save_seconds, std::int64_t save_bytes) {
  if (!end_) {
    return false;
  }
  if (asked_) {
    longest_step_ = std::max(longest_step_, seconds(now - *asked_));
  }
  asked_ = now;
  return seconds(*end_ - now) < margin_seconds(save_seconds, save_bytes);
}

}  // namespace trireme
