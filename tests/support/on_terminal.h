// Runs a function in a child process that has a terminal of its own, and types on it as a user
// would. For programs without threads.
#pragma once

#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

namespace trireme {

struct ShownText {
  int exit_code = -1;  // what the function returned; 1 if it threw
  std::string text;    // what the terminal showed, ending with the message of an exception
};

// Only in the child.
[[noreturn]] inline void end_child(int output, const std::function<int()>& function) {
  int code = 1;
  try {
    code = function();
  } catch (const std::exception& error) {
    (void)!::write(output, error.what(), std::string_view(error.what()).size());
  }
  ::_exit(code);
}

// Returns once the child has ended.
inline ShownText watch_child(pid_t child, int terminal, const std::vector<std::string>& typed) {
  ShownText shown;
  std::size_t done = 0;
  char piece[256];
  for (ssize_t got = 0; (got = ::read(terminal, piece, sizeof piece)) > 0;) {
    shown.text.append(piece, static_cast<std::size_t>(got));
    if (shown.text.ends_with(": ") && done < typed.size()) {
      (void)!::write(terminal, typed[done].data(), typed[done].size());
      ++done;
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(terminal);
  shown.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return shown;
}

// Types each text after the terminal has shown one more prompt, which ends with ": ".
inline ShownText on_terminal(const std::vector<std::string>& typed,
                             const std::function<int()>& function) {
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child < 0) {
    throw std::runtime_error("no pseudo-terminal");
  }
  if (child == 0) {
    end_child(STDOUT_FILENO, function);
  }
  return watch_child(child, terminal, typed);
}

// Runs the function in a session that has no terminal.
inline ShownText without_terminal(const std::function<int()>& function) {
  int ends[2] = {-1, -1};
  if (::pipe(ends) != 0) {
    throw std::runtime_error("no pipe");
  }
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    ::setsid();
    end_child(ends[1], function);
  }
  ::close(ends[1]);
  return watch_child(child, ends[0], {});
}

}  // namespace trireme
