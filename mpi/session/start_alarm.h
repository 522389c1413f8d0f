// StartAlarm guards a part of the start that has no deadline of its own. If that part takes too
// long, the alarm ends the process with exit code 85 and says what to check: MPI_Init waits
// indefinitely for a rank that is stopped, and open(2) for a file system that hangs. Owned by the
// function that runs that part; its thread only waits.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace trireme {

// Parses the value of TRIREME_START_DEADLINE, in seconds; 600 if it is not set. Throws ConfigError
// for anything but a positive number.
std::chrono::duration<double> start_deadline(const std::optional<std::string>& given);

class StartAlarm {
 public:
  // `words` says which rank has not done what, and what to try. It is printed as a line of its own.
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
