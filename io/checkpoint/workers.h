// Runs the background work of io/checkpoint on threads: file system calls, digests and copies,
// never MPI.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

namespace trireme {

// Returns the number of processors that this process may run on.
int available_processors();

// Calls work(i) for i in [0, count), on up to `threads` threads (the caller's included), and
// returns when all calls are done. After the first exception no further calls start, and it is
// thrown again here.
void parallel_for(int threads, std::int64_t count, const std::function<void(std::int64_t)>& work);

// Runs one piece of work at a time on a thread of its own. One thread makes all calls. An exception
// from the work fails the job, with its text in error(); so does a thread that cannot be started.
class BackgroundJob {
 public:
  // Ordered so that the minimum over all ranks is the state of the group.
  enum class State : int { running = 0, failed = 1, succeeded = 2 };

  BackgroundJob() = default;
  BackgroundJob(const BackgroundJob&) = delete;
  BackgroundJob& operator=(const BackgroundJob&) = delete;
  ~BackgroundJob() { wait(); }

  // Waits for the previous work, then starts this one.
  void start(std::function<void()> work);
  // Sets the state to succeeded, without a thread.
  void succeed();
  void fail(const std::string& error);
  void wait();
  // Waits for at most `limit`. Returns whether the work has ended.
  bool wait_for(std::chrono::duration<double> limit);
  State state() const { return state_.load(std::memory_order_acquire); }
  // Precondition: state() is failed.
  const std::string& error() const { return error_; }

 private:
  std::thread thread_;
  std::atomic<State> state_ = State::succeeded;
  std::string error_;
};

}  // namespace trireme
