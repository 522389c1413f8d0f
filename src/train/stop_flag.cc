#include "src/train/stop_flag.h"

#include <array>
#include <atomic>
#include <csignal>

#include <unistd.h>

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

}  // namespace

StopFlag::StopFlag() {
  received = 0;
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &action, &previous[i]);
  }
}

StopFlag::~StopFlag() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &previous[i], nullptr);
  }
}

int StopFlag::signal() const { return received; }

}  // namespace trireme
