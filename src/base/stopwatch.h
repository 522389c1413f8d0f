// Stopwatch returns the time since its construction on a steady clock. A value; for measurements,
// not for deadlines.
#pragma once

#include <chrono>

namespace trireme {

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  double milliseconds() const { return 1e3 * seconds(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace trireme
