// TimeLimit: when a run has to save and leave because its job is about to end. Before each step the
// loop asks whether one more step, and then a save, may still fit; how long those take is measured
// as the run goes. A value of the training loop; its thread.
//
//   margin = 2 x longest time between two questions + 2 x longest save + 30 s
//
// (evaluations and stalls of saves lie between questions). A save that nobody has measured yet is
// taken to run at 100 MB/s. `run.stop_before_end` replaces all of that by a number.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <optional>

namespace trireme {

// Stands for the time limit where a signal's number is expected.
inline constexpr int kTimeLimitSignal = SIGXCPU;

class TimeLimit {
 public:
  using Clock = std::chrono::steady_clock;

  // Never.
  TimeLimit() = default;
  // end: of the job. margin_seconds: fixed, if given.
  TimeLimit(Clock::time_point end, std::optional<double> margin_seconds)
      : end_(end), fixed_(margin_seconds) {}

  // At a step's end. save_seconds: of the longest save so far, 0: none was measured;
  // save_bytes: of this rank.
  bool reached(Clock::time_point now, double save_seconds, std::int64_t save_bytes);
  double margin_seconds(double save_seconds, std::int64_t save_bytes) const;

 private:
  std::optional<Clock::time_point> end_;
  std::optional<double> fixed_;
  std::optional<Clock::time_point> asked_;
  double longest_step_ = 0;
};

}  // namespace trireme
