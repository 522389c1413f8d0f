// Launcher: the mpirun or srun of an attempt, from its start to its end. Owned by the supervisor;
// one thread, with which it dies.
#pragma once

#include <optional>

#include "slurm/launch/commands.h"
#include "slurm/process/child.h"

namespace trireme {

class Launcher {
 public:
  // As Child: NotFound where there is no such program.
  void start(const Command& command);
  // Told once: that it has ended, and what mpirun would have removed is removed.
  struct End {
    std::optional<int> code;  // its exit code, or 128 and the signal; nothing: nobody knows
  };
  std::optional<End> ended();
  // To it, or to its whole group; nothing where it does not run.
  void signal(int number) const;
  void kill() const;
  // Kills it and waits for it.
  void end() { child_.reset(); }
  // It hangs in the kernel: counts as ended from now on.
  void leave();

 private:
  std::optional<Child> child_;
  bool left_ = false;
};

}  // namespace trireme
