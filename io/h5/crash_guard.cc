#include "io/h5/crash_guard.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <mutex>
#include <string>

#include <unistd.h>

#include "src/base/error.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

constexpr std::array kCrashes = {SIGSEGV, SIGBUS, SIGFPE};

// A signal handler has no arguments of ours, so these must be global.
thread_local std::array<char, 4096> message{};
thread_local std::size_t message_bytes = 0;
std::mutex mutex;  // guards the two variables below
int guards = 0;
std::array<struct sigaction, kCrashes.size()> before{};

// A crash of a thread without a guard happens again, without this handler.
void report_and_end(int number) {
  if (message_bytes == 0) {
    std::signal(number, SIG_DFL);
    return;
  }
  (void)!::write(STDERR_FILENO, message.data(), message_bytes);
  ::_exit(static_cast<int>(ExitCode::bad_data));
}

}  // namespace

CrashGuard::CrashGuard(const std::filesystem::path& file) {
  const std::string text = fmt::format(
      "trireme: {}: the HDF5 library crashed while it read this file, which is probably damaged; "
      "replace it, or convert the other files without it\n",
      printable(file.string()));
  message_bytes = std::min(text.size(), message.size());
  std::copy_n(text.begin(), message_bytes, message.begin());
  const std::lock_guard lock(mutex);
  if (guards++ > 0) {
    return;
  }
  struct sigaction action {};
  action.sa_handler = report_and_end;
  for (std::size_t i = 0; i < kCrashes.size(); ++i) {
    ::sigaction(kCrashes[i], &action, &before[i]);
  }
}

CrashGuard::~CrashGuard() {
  message_bytes = 0;
  const std::lock_guard lock(mutex);
  if (--guards > 0) {
    return;
  }
  for (std::size_t i = 0; i < kCrashes.size(); ++i) {
    ::sigaction(kCrashes[i], &before[i], nullptr);
  }
}

}  // namespace trireme
