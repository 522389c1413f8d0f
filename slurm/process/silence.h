// Silence measures how long another process has sent nothing, counting only time in which this one
// could have listened. While this process is stopped (a suspended job) or blocked on a disk,
// messages may be waiting unread. Used by one thread, which calls seconds() at every turn of its
// loop.
#pragma once

#include <chrono>

namespace trireme {

class Silence {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Silence(Clock::time_point now = Clock::now()) : heard_(now), asked_(now) {}

  void heard(Clock::time_point now = Clock::now()) { heard_ = asked_ = now; }

  // A turn of more than two seconds does not count.
  double seconds(Clock::time_point now = Clock::now()) {
    if (now - asked_ > kLongestTurn) {
      heard_ += now - asked_;
    }
    asked_ = now;
    return std::chrono::duration<double>(now - heard_).count();
  }

 private:
  static constexpr std::chrono::seconds kLongestTurn{2};
  Clock::time_point heard_;
  Clock::time_point asked_;
};

}  // namespace trireme
