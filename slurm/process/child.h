// Child: a process that this one has started and will end: mpirun, srun, ssh, an agent. Owned by
// one thread, which is the one that starts it: with it dies the child, where that is asked for.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace trireme {

struct ChildPlan {
  std::vector<std::string> argv = {};  // the first is looked up in PATH
  // Set on top of this process's environment; an empty value removes the variable.
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::string input = {};    // what it reads on stdin, at most 4 KiB; then the end of file
  bool own_group = true;     // a process group of its own: a Ctrl-C at the terminal passes it by
  bool dies_with_us = true;  // SIGKILL when the thread that started it ends, however that comes
  int output = -1;           // stdout and stderr go here; -1: where ours go
};

class Child {
 public:
  // NotFound where there is no such program that could be run; IoError where this machine has no
  // room for it now.
  explicit Child(const ChildPlan& plan);
  // Kills what still runs, group and all, and waits for it.
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;

  pid_t pid() const { return pid_; }
  // Its exit code, or 128 and the signal that ended it; nothing while it runs. 255 where this
  // process was started with SIGCHLD ignored, so that nobody knows.
  std::optional<int> poll();
  // Waits at most so long.
  std::optional<int> wait(double seconds);
  // To the process alone, or to its whole group.
  void signal(int number) const;
  void signal_group(int number) const;
  // Forgets it: what hangs in the kernel is not waited for.
  void leave() { pid_ = -1; }

 private:
  pid_t pid_ = -1;
  bool own_group_ = true;
  std::optional<int> code_;
};

}  // namespace trireme
