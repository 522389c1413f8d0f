// StopFlag records that the job was asked to stop (SIGTERM, SIGUSR1, SIGUSR2, SIGINT), or that a
// process has used up its processor time (SIGXCPU, `ulimit -t`). SIGHUP is ignored until the
// process ends. The handlers only set an atomic; the training loop reads it at every step boundary,
// where all ranks agree. There is one StopFlag per process, which must live as long as signals may
// arrive. A second SIGINT ends the process at once.
//
// The handlers run on a thread of their own. The thread that makes the StopFlag, and all threads
// that it starts later, block these signals and SIGHUP, because the products of oneDNN use the
// stack pointer for data on the heap: the kernel would write a handler's frame over that data.
#pragma once

#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>

namespace trireme {

class StopFlag {
 public:
  // Installs the handlers. The destructor restores the old ones; but if a signal had come, all
  // except SIGINT are ignored from then on. Throws IoError if no thread can be started.
  StopFlag();
  ~StopFlag();
  StopFlag(const StopFlag&) = delete;
  StopFlag& operator=(const StopFlag&) = delete;

  // Returns the signal that came first, or 0.
  int signal() const;

 private:
  void wait_for_end();

  sigset_t mask_before_{};
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  bool is_ready_ = false;  // the handlers are installed
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace trireme
