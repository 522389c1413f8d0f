// Child is a process that this one has started and will end: mpirun, srun, ssh, an agent. Used only
// by the thread that starts it; the child can be made to die with that thread.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace trireme {

struct ChildPlan {
  std::vector<std::string> argv = {};  // the first word is looked up in PATH
  // Variables to set in addition to this process's environment; an empty value removes one.
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::string input = {};  // text for stdin, at most 4 KiB
  // Whether it gets its own process group, which Ctrl-C at the terminal does not reach.
  bool own_group = true;
  bool dies_with_us = true;  // whether it receives SIGKILL when the thread that started it ends
  int output = -1;           // descriptor for stdout and stderr; -1 to inherit ours
};

class Child {
 public:
  // Throws NotFound if the program does not exist or cannot be executed, and IoError if this
  // machine lacks the resources for another process.
  explicit Child(const ChildPlan& plan);
  // Kills the process, or its group if it has its own, and waits for it.
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;

  pid_t pid() const { return pid_; }
  // Returns the exit code, or 128 + signal, or nullopt while the child runs. The result is 255 if
  // the code is unknown because this process was started with SIGCHLD ignored.
  std::optional<int> poll();
  // Waits at most `seconds` for its end; returns the same as poll().
  std::optional<int> wait(double seconds);
  // Send a signal to the process, or to its group if it has its own.
  void signal(int number) const;
  void signal_group(int number) const;
  // Forgets a process that hangs in the kernel, so that the destructor does not wait for it.
  void leave() { pid_ = -1; }

 private:
  pid_t pid_ = -1;
  bool own_group_ = true;
  std::optional<int> code_;
};

}  // namespace trireme
