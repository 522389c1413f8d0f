// TimeGuard ends the process at a deadline, whatever it is doing then: the last resort of a
// benchmark that promises to stay within a time. It runs on a thread of its own, which the
// destructor ends.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace trireme {

class TimeGuard {
 public:
  // at_deadline: called once on the guard's thread unless the guard has been destroyed before. It
  // may end the process.
  TimeGuard(std::chrono::duration<double> limit, std::function<void()> at_deadline);
  ~TimeGuard();
  TimeGuard(const TimeGuard&) = delete;
  TimeGuard& operator=(const TimeGuard&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace trireme
