// TimeGuard ends the process at a deadline or at an interrupting signal (interruption.h), whatever
// it is doing then: the last resort of a benchmark that promises to stay within a time and to keep
// what it has measured. It runs on a thread of its own, which the destructor ends.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "src/base/interruption.h"

namespace trireme {

class TimeGuard {
 public:
  // at_end: called once on the guard's thread unless the guard has been destroyed before: with 0 at
  // the deadline, or with the number of the signal. It may end the process.
  TimeGuard(std::chrono::duration<double> limit, std::function<void(int)> at_end);
  ~TimeGuard();
  TimeGuard(const TimeGuard&) = delete;
  TimeGuard& operator=(const TimeGuard&) = delete;

 private:
  NotedSignals noted_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace trireme
