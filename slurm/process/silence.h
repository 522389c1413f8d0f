// Silence: how long nothing was heard of another process, by time during which this one could have
// listened. Where it was stopped itself (a suspended job) or waited for a disk, what the other said
// meanwhile is still to be read. One thread, which asks at every turn of its loop.
#pragma once

#include <chrono>

namespace trireme {

class Silence {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Silence(Clock::time_point now = Clock::now()) : heard_(now), asked_(now) {}

  void heard(Clock::time_point now = Clock::now()) { heard_ = asked_ = now; }

  // A turn that took longer than two seconds does not count.
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
