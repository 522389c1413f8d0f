#include "src/train/ending/stop_flag.h"

#include <array>
#include <atomic>
#include <csignal>
#include <system_error>

#include <pthread.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/thread_error.h"

namespace trireme {
namespace {

constexpr std::array kSignals = {SIGTERM, SIGUSR1, SIGUSR2, SIGINT, SIGXCPU};
// A signal handler has no arguments of ours, so this must be a global variable.
std::atomic<int> received{0};
std::array<struct sigaction, kSignals.size()> previous;

void note_signal(int number) {
  int none = 0;
  if (!received.compare_exchange_strong(none, number) && number == SIGINT) {
    ::_exit(128 + SIGINT);
  }
}

sigset_t stop_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : kSignals) {
    ::sigaddset(&set, number);
  }
  return set;
}

}  // namespace

StopFlag::StopFlag() {
  received = 0;
  // A run survives the end of the terminal's session. A handler that somebody installs later, such
  // as UCX's, must not run on a computing thread either.
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGHUP, &ignore, nullptr);
  sigset_t blocked = stop_signals();
  ::sigaddset(&blocked, SIGHUP);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &mask_before_);
  try {
    thread_ = std::thread([this] { wait_for_end(); });
  } catch (const std::system_error& error) {
    ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
    throw ResourceError(no_thread("to receive signals", error));
  }
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &action, &previous[i]);
  }
  {
    const std::lock_guard lock(mutex_);
    is_ready_ = true;
  }
  changed_.notify_all();
}

StopFlag::~StopFlag() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  thread_.join();
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGHUP, &ignore, nullptr);  // discards one that is still pending
  ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  // A scheduler may repeat its signal while a stopped process, which has saved, still ends.
  const bool is_stopped = received != 0;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    const bool is_repeated = is_stopped && kSignals[i] != SIGINT;
    ::sigaction(kSignals[i], is_repeated ? &ignore : &previous[i], nullptr);
  }
}

void StopFlag::wait_for_end() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return is_ready_; });
  const sigset_t set = stop_signals();
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  changed_.wait(lock, [this] { return is_over_; });
}

int StopFlag::signal() const { return received; }

}  // namespace trireme
