// Threads of this room's own: they do file system calls, digests and copies, never MPI.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

namespace trireme {

// The processors that this process may run on.
int available_processors();

// Calls work(i) for i in [0, count), on up to `threads` threads, and returns when all are done. The
// first exception stops the handing out of work and is thrown again here.
void parallel_for(int threads, std::int64_t count, const std::function<void(std::int64_t)>& work);

// One piece of work in the background at a time. Used by one thread; its own thread only runs the
// work. What the work throws becomes error().
class BackgroundJob {
 public:
  // In this order, so that the least over all ranks says how far the group is.
  enum class State : int { running = 0, failed = 1, succeeded = 2 };

  BackgroundJob() = default;
  BackgroundJob(const BackgroundJob&) = delete;
  BackgroundJob& operator=(const BackgroundJob&) = delete;
  ~BackgroundJob() { wait(); }

  // Waits for the work before it.
  void start(std::function<void()> work);
  // Ends at once, without a thread.
  void succeed();
  void fail(const std::string& error);
  void wait();
  // The same, for so long at most: whether it has ended.
  bool wait_for(std::chrono::duration<double> limit);
  State state() const { return state_.load(std::memory_order_acquire); }
  // Once state() is failed.
  const std::string& error() const { return error_; }

 private:
  std::thread thread_;
  std::atomic<State> state_ = State::succeeded;
  std::string error_;
};

}  // namespace trireme
