// Lets a command that starts other programs end them before it ends itself. While
// run_interruptibly() works, SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 only set a flag;
// run_command() reads it while it runs a launcher, ends the launcher, and throws Interrupted. All
// functions are safe on any thread.
#pragma once

#include <array>
#include <csignal>
#include <exception>
#include <functional>
#include <initializer_list>
#include <utility>
#include <vector>

namespace trireme {

struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted by a signal"; }
};

// Returns the first signal that came during run_interruptibly(), or 0.
int interruption();
// Returns whether further signals came: there is no time for a clean end.
bool interrupted_again();
// Throws Interrupted if a signal has come.
void throw_if_interrupted();

inline constexpr std::array kInterrupting = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

// While one exists, the interrupting signals only set the flag that interruption() reads. Signals
// that the process ignores (nohup) stay ignored. One may be made while another exists, and has to
// be destroyed before that.
class NotedSignals {
 public:
  // more: signals to note beside kInterrupting.
  explicit NotedSignals(std::initializer_list<int> more = {});
  // Restores what each signal did before this object was made, and clears the flag unless another
  // object still exists.
  ~NotedSignals();
  NotedSignals(const NotedSignals&) = delete;
  NotedSignals& operator=(const NotedSignals&) = delete;

 private:
  std::vector<std::pair<int, struct sigaction>> before_;  // by number
};

// Ends the process by the signal, so that whoever waits for it sees which one.
[[noreturn]] void end_by_signal(int number);

// Runs `work`. If it throws Interrupted, this function calls `on_interrupt`, which may tell the
// user what is left to do, and ends the process by the signal that came. Only one call may be
// active in a process.
void run_interruptibly(const std::function<void()>& work,
                       const std::function<void()>& on_interrupt);

}  // namespace trireme
