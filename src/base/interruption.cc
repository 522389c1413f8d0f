#include "src/base/interruption.h"

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>

namespace trireme {
namespace {

constexpr std::array kInterrupting = {SIGINT, SIGTERM, SIGHUP};

// A signal handler has no arguments of ours, so these must be global variables.
std::atomic<int> first_signal{0};
std::atomic<int> signals_seen{0};

void note_interruption(int number) {
  int none = 0;
  first_signal.compare_exchange_strong(none, number);
  ++signals_seen;
}

// While it exists, the interrupting signals only set the flag.
class NotedSignals {
 public:
  NotedSignals() {
    first_signal = 0;
    signals_seen = 0;
    struct sigaction action {};
    action.sa_handler = note_interruption;
    for (std::size_t i = 0; i < kInterrupting.size(); ++i) {
      ::sigaction(kInterrupting[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) {
        ::sigaction(kInterrupting[i], &action, nullptr);
      }
    }
  }
  ~NotedSignals() {
    for (std::size_t i = 0; i < kInterrupting.size(); ++i) {
      ::sigaction(kInterrupting[i], &before_[i], nullptr);
    }
    first_signal = 0;
  }
  NotedSignals(const NotedSignals&) = delete;
  NotedSignals& operator=(const NotedSignals&) = delete;

 private:
  std::array<struct sigaction, kInterrupting.size()> before_{};
};

}  // namespace

int interruption() { return first_signal; }

bool interrupted_again() { return first_signal != 0 && signals_seen > 1; }

void throw_if_interrupted() {
  if (interruption() != 0) {
    throw Interrupted();
  }
}

void run_interruptibly(const std::function<void()>& work,
                       const std::function<void()>& on_interrupt) {
  int number = 0;
  {
    const NotedSignals noted;
    try {
      work();
      return;
    } catch (const Interrupted&) {
      number = interruption();
      on_interrupt();
    }
  }
  std::fflush(nullptr);
  std::signal(number, SIG_DFL);
  std::raise(number);
}

}  // namespace trireme
