// HangGuard turns an endless loop of libhdf5 into an error. libhdf5 1.10 follows lengths and
// addresses in a file in circles: an object of no length in a global heap is enough. If the thread
// of a guard has computed for longer than `limit` while the guard lives, the process ends with exit
// code 65 and a message that names the file. The time is CPU time of the thread, so that a slow
// disk or a busy machine does not count. One guard per thread at a time.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include <time.h>

namespace trireme {

// Every operation on the largest honest file takes a small part of this.
inline constexpr std::chrono::milliseconds kHangLimit{30'000};

class HangGuard {
 public:
  // limit: more than 0. Throws IoError if the system gives no timer.
  explicit HangGuard(const std::filesystem::path& file,
                     std::chrono::milliseconds limit = kHangLimit);
  ~HangGuard();
  HangGuard(const HangGuard&) = delete;
  HangGuard& operator=(const HangGuard&) = delete;

 private:
  const std::string message_;
  timer_t timer_{};
};

}  // namespace trireme
