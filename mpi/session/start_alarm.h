// StartAlarm: while it lives, a part of the start is at work that has no deadline of its own; if it
// takes too long, the alarm ends the process with exit code 85 and says what to look at. MPI_Init
// waits for ever for a rank that is stopped, and open(2) for a file system that hangs. Owned by
// whoever starts that part; its thread does nothing but wait.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace trireme {

// Seconds, by TRIREME_START_DEADLINE; 600 without it. ConfigError for anything but a positive
// number.
std::chrono::duration<double> start_deadline(const std::optional<std::string>& given);

class StartAlarm {
 public:
  // words: who has not done what, and what to try; printed as a line of its own.
  StartAlarm(std::chrono::duration<double> limit, std::string words);
  ~StartAlarm();
  StartAlarm(const StartAlarm&) = delete;
  StartAlarm& operator=(const StartAlarm&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace trireme
