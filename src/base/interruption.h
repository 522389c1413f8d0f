// Lets a command that starts other programs end them before it ends itself. While
// run_interruptibly() works, SIGINT, SIGTERM and SIGHUP only set a flag; run_command() reads it
// while it runs a launcher, ends the launcher, and throws Interrupted. All functions are safe on
// any thread.
#pragma once

#include <exception>
#include <functional>

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

// Runs `work`. If it throws Interrupted, this function calls `on_interrupt`, which may tell the
// user what is left to do, restores the signals' actions, and ends the process by the signal that
// came, so that a shell or a job script sees it. Signals that the process ignores (nohup) stay
// ignored. Only one call may be active in a process.
void run_interruptibly(const std::function<void()>& work,
                       const std::function<void()>& on_interrupt);

}  // namespace trireme
