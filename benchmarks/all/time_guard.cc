#include "benchmarks/all/time_guard.h"

#include <algorithm>

namespace trireme {
namespace {

constexpr std::chrono::milliseconds kBetweenSignalChecks{50};

}  // namespace

TimeGuard::TimeGuard(std::chrono::duration<double> limit, std::function<void(int)> at_end)
    : thread_([this, limit, at_end = std::move(at_end)] {
        using Clock = std::chrono::steady_clock;
        const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
        std::unique_lock lock(mutex_);
        while (interruption() == 0 && Clock::now() < deadline) {
          const auto next = std::min(deadline, Clock::now() + kBetweenSignalChecks);
          if (changed_.wait_until(lock, next, [this] { return ends_; })) {
            return;
          }
        }
        lock.unlock();
        at_end(interruption());
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
