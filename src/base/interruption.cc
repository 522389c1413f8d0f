#include "src/base/interruption.h"

#include <atomic>
#include <cstdio>

#include <pthread.h>
#include <unistd.h>

namespace trireme {
namespace {

// A signal handler has no arguments of ours, so these must be global variables.
std::atomic<int> first_signal{0};
std::atomic<int> signals_seen{0};
std::atomic<int> noted_signals{0};  // objects of this class

void note_interruption(int number) {
  int none = 0;
  first_signal.compare_exchange_strong(none, number);
  ++signals_seen;
}

}  // namespace

NotedSignals::NotedSignals(std::initializer_list<int> more) {
  if (noted_signals++ == 0) {
    first_signal = 0;
    signals_seen = 0;
  }
  struct sigaction action {};
  action.sa_handler = note_interruption;
  action.sa_flags = SA_RESTART;
  std::vector<int> numbers(kInterrupting.begin(), kInterrupting.end());
  numbers.insert(numbers.end(), more);
  before_.reserve(numbers.size());
  for (const int number : numbers) {
    struct sigaction before {};
    ::sigaction(number, nullptr, &before);
    before_.emplace_back(number, before);
    if (before.sa_handler != SIG_IGN) {
      ::sigaction(number, &action, nullptr);
    }
  }
}

NotedSignals::~NotedSignals() {
  for (const auto& [number, before] : before_) {
    ::sigaction(number, &before, nullptr);
  }
  if (--noted_signals == 0) {
    first_signal = 0;
  }
}

int interruption() { return first_signal; }

bool interrupted_again() { return first_signal != 0 && signals_seen > 1; }

void throw_if_interrupted() {
  if (interruption() != 0) {
    throw Interrupted();
  }
}

void end_by_signal(int number) {
  std::signal(number, SIG_DFL);
  sigset_t own;
  ::sigemptyset(&own);
  ::sigaddset(&own, number);
  ::pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
  std::raise(number);
  ::_exit(128 + number);  // only if a debugger has taken the signal away
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
  end_by_signal(number);
}

}  // namespace trireme
