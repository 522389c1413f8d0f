#include "io/h5/crash_guard.h"

#include <csignal>

#include "io/h5/guarded_signals.h"
#include "src/base/check.h"
#include "src/base/error.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

// Global, because a signal handler takes no arguments of ours. Null without a guard.
thread_local const std::string* crash_message = nullptr;

// If the thread has no guard, the handler returns, and the instruction that crashed runs once more,
// with the default action.
void end_at_crash(int number) {
  if (crash_message != nullptr) {
    end_with(*crash_message);
  }
  std::signal(number, SIG_DFL);
}

GuardedSignals& crash_signals() {
  static GuardedSignals signals({SIGSEGV, SIGBUS, SIGFPE}, end_at_crash);
  return signals;
}

}  // namespace

CrashGuard::CrashGuard(const std::filesystem::path& file)
    : message_(fmt::format("trireme: {}: the HDF5 library crashed while it read this file, which "
                           "is probably damaged; replace it, or leave it out\n",
                           printable(file.string()))) {
  check(crash_message == nullptr, "a thread has one guard against crashes at a time");
  crash_message = &message_;
  crash_signals().enter();
}

CrashGuard::~CrashGuard() {
  crash_signals().leave();
  crash_message = nullptr;
}

}  // namespace trireme
