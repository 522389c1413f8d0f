// StartAlarm: while it lives, MPI is being started; if that takes too long, it ends the process
// with exit code 85 and says what to look at. MPI_Init has no deadline of its own, and waits for
// ever for a rank that is stopped. Owned by the session's constructor.
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
  // `who`: "rank 3 (host n2)", as far as known.
  StartAlarm(std::chrono::duration<double> limit, std::string who);
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
