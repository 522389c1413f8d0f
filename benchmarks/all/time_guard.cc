#include "benchmarks/all/time_guard.h"

namespace trireme {

TimeGuard::TimeGuard(std::chrono::duration<double> limit, std::function<void()> at_deadline)
    : thread_([this, limit, at_deadline = std::move(at_deadline)] {
        std::unique_lock lock(mutex_);
        if (!changed_.wait_for(lock, limit, [this] { return ends_; })) {
          lock.unlock();
          at_deadline();
        }
      }) {}

TimeGuard::~TimeGuard() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

}  // namespace trireme
