#include "io/h5/hang_guard.h"

#include <cerrno>
#include <csignal>
#include <system_error>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/h5/guarded_signals.h"
#include "src/base/check.h"
#include "src/base/error.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

// Nothing else in the program uses this signal.
constexpr int kSignal = SIGVTALRM;

// A signal handler has no arguments of ours, so this must be global. Null without a guard.
thread_local const std::string* hang_message = nullptr;

void end_at_hang(int /*number*/) {
  if (hang_message != nullptr) {
    end_with(*hang_message);
  }
}

GuardedSignals& hang_signals() {
  static GuardedSignals signals({kSignal}, end_at_hang);
  return signals;
}

// Returns a timer of the calling thread's CPU time that signals this thread.
timer_t make_timer(const std::filesystem::path& file) {
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = kSignal;
  event._sigev_un._tid = static_cast<pid_t>(::syscall(SYS_gettid));
  timer_t timer{};
  if (::timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) != 0) {
    throw IoError(
        fmt::format("{}: cannot limit the time that the HDF5 library takes for this "
                    "file: {}; see the limit of timers (RLIMIT_SIGPENDING)",
                    file.string(), std::system_category().message(errno)));
  }
  return timer;
}

void unblock() {
  sigset_t own;
  ::sigemptyset(&own);
  ::sigaddset(&own, kSignal);
  ::pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
}

}  // namespace

HangGuard::HangGuard(const std::filesystem::path& file, std::chrono::milliseconds limit)
    : message_(fmt::format("trireme: {}: the HDF5 library computed for {} ms without finishing one "
                           "operation on this file, which is probably damaged; replace it, or "
                           "leave it out\n",
                           printable(file.string()), limit.count())),
      timer_(make_timer(file)) {
  check(hang_message == nullptr, "a thread has one guard against hangs at a time");
  check(limit.count() > 0, "the limit is positive");
  hang_message = &message_;
  hang_signals().enter();
  unblock();
  itimerspec once{};
  once.it_value.tv_sec = limit.count() / 1000;
  once.it_value.tv_nsec = limit.count() % 1000 * 1'000'000;
  ::timer_settime(timer_, 0, &once, nullptr);
}

HangGuard::~HangGuard() {
  ::timer_delete(timer_);
  hang_signals().leave();
  hang_message = nullptr;
}

}  // namespace trireme
