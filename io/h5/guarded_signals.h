// GuardedSignals installs one handler for some signals of the process while at least one guard of
// libhdf5 lives, and puts the earlier handlers back after the last one. end_with() is what such a
// handler calls. Private to io/h5.
#pragma once

#include <csignal>
#include <mutex>
#include <string>
#include <vector>

namespace trireme {

class GuardedSignals {
 public:
  using Handler = void (*)(int);
  GuardedSignals(std::vector<int> numbers, Handler handler);
  void enter();
  void leave();

 private:
  const std::vector<int> numbers_;
  const Handler handler_;
  std::mutex mutex_;  // guards the two variables below
  int guards_ = 0;
  std::vector<struct sigaction> before_;
};

// Writes the text to stderr and ends the process with exit code 65. Safe in a signal handler.
[[noreturn]] void end_with(const std::string& text);

}  // namespace trireme
