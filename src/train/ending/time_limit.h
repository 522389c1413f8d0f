// TimeLimit decides when a run must save and exit because its job is about to end. Before each
// step, the training loop asks whether one more step and then a save may still fit; how long these
// take is measured during the run. A plain value, used by the loop's thread.
//
//   margin = 2 x longest time between two calls of reached() + 2 x longest save + 30 s
//
// Evaluations and stalls of saves happen between calls and are included. Before the first save, a
// speed of 100 MB/s is assumed. If run.stop_before_end is a number, it replaces the margin.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace trireme {

// Represents the time limit of the job where a signal number is expected. It is above all of them.
inline constexpr int kTimeLimitSignal = 1 << 10;

class TimeLimit {
 public:
  using Clock = std::chrono::steady_clock;

  // Constructs a limit that is never reached.
  TimeLimit() = default;
  // `end` is the end of the job. `margin_seconds`, if given, replaces the computed margin.
  TimeLimit(Clock::time_point end, std::optional<double> margin_seconds)
      : end_(end), fixed_(margin_seconds) {}

  // Call before each step. `save_seconds` is the duration of the longest save so far, or 0 if there
  // was none; `save_bytes` is the size of this rank's part of a save.
  bool reached(Clock::time_point now, double save_seconds, std::int64_t save_bytes);
  double margin_seconds(double save_seconds, std::int64_t save_bytes) const;

 private:
  std::optional<Clock::time_point> end_;
  std::optional<double> fixed_;
  std::optional<Clock::time_point> asked_;
  double longest_step_ = 0;
};

}  // namespace trireme
