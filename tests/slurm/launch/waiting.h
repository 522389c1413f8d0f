// Waits for what other processes do, without a limit of its own: each test program has one.
#pragma once

#include <csignal>

#include <poll.h>
#include <pthread.h>

namespace trireme {

template <class Condition>
void wait_until(const Condition& holds) {
  while (!holds()) {
    ::poll(nullptr, 0, 5);
  }
}

// Keeps the signal mask of this thread, and how the process handles some signals, for tests of code
// that changes them.
class SignalSettings {
 public:
  SignalSettings() {
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask_);
    ::sigaction(SIGPIPE, nullptr, &pipe_);
    ::sigaction(SIGCHLD, nullptr, &child_);
  }
  ~SignalSettings() {
    ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
    ::sigaction(SIGPIPE, &pipe_, nullptr);
    ::sigaction(SIGCHLD, &child_, nullptr);
  }
  SignalSettings(const SignalSettings&) = delete;
  SignalSettings& operator=(const SignalSettings&) = delete;

 private:
  sigset_t mask_{};
  struct sigaction pipe_ {};
  struct sigaction child_ {};
};

}  // namespace trireme
