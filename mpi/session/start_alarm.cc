#include "mpi/session/start_alarm.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <string_view>

#include <unistd.h>

#include "src/base/error.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

constexpr double kDefaultSeconds = 600;
constexpr double kMostSeconds = 1e9;  // the clock counts nanoseconds in 64 bits

[[noreturn]] void ring(const std::string& words) {
  fmt::print(stderr, "{}\n", printable(words));
  std::fflush(stderr);
  ::_exit(static_cast<int>(ExitCode::hang));
}

}  // namespace

std::chrono::duration<double> start_deadline(const std::optional<std::string>& given) {
  if (!given) {
    return std::chrono::duration<double>(kDefaultSeconds);
  }
  double seconds = 0;
  const char* const end = given->data() + given->size();
  const auto [at, error] = std::from_chars(given->data(), end, seconds);
  if (error != std::errc() || at != end || !(seconds > 0)) {
    throw ConfigError(fmt::format(
        "TRIREME_START_DEADLINE={}: expected a positive number of seconds", printable(*given)));
  }
  return std::chrono::duration<double>(std::fmin(seconds, kMostSeconds));
}

StartAlarm::StartAlarm(std::chrono::duration<double> limit, std::string words)
    : thread_([this, limit, line = std::move(words)] {
        std::unique_lock lock(mutex_);
        if (!changed_.wait_for(lock, limit, [this] { return over_; })) {
          ring(line);
        }
      }) {}

StartAlarm::~StartAlarm() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

}  // namespace trireme
