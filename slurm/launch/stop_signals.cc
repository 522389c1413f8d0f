#include "slurm/launch/stop_signals.h"

#include <array>
#include <csignal>
#include <utility>

#include <sys/signalfd.h>
#include <unistd.h>

namespace trireme {
namespace {

constexpr std::array kSignals = {SIGCHLD, SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP};

bool is_ignored(int number) {
  struct sigaction action {};
  return ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

StopSignals::StopSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : kSignals) {
    // nohup starts programs with SIGHUP ignored, but the kernel queues blocked signals all the
    // same.
    if (number != SIGHUP || !is_ignored(SIGHUP)) {
      sigaddset(&set, number);
    }
  }
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  // A process started with SIGCHLD ignored could not wait for its children.
  ::signal(SIGCHLD, SIG_DFL);
  signals_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

void StopSignals::hear() {
  signalfd_siginfo info{};
  while (::read(fd(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    if (static_cast<int>(info.ssi_signo) != SIGCHLD) {
      heard_.push_back(static_cast<int>(info.ssi_signo));
      asked_ = true;
    }
  }
}

std::vector<int> StopSignals::take() { return std::exchange(heard_, {}); }

}  // namespace trireme
