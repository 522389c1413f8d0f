// LauncherProcess is the mpirun or srun of an attempt. Owned by the supervisor; used by one thread,
// with which the process dies.
#pragma once

#include <optional>

#include "slurm/launch/commands.h"
#include "slurm/process/child.h"

namespace trireme {

class LauncherProcess {
 public:
  // Throws NotFound if the program does not exist.
  void start(const Command& command);
  // Returns the end of the process once, after removing what mpirun would have removed.
  struct End {
    std::optional<int> code;  // exit code, or 128 + signal; nullopt if unknown
  };
  std::optional<End> ended();
  // Send a signal to the process, or SIGKILL to its process group. They do nothing if it is not
  // running.
  void signal(int number) const;
  void kill() const;
  // Kills the process and waits for its end.
  void end() { child_.reset(); }
  // Counts the process as ended from now on; for one that hangs in the kernel.
  void leave();

 private:
  std::optional<Child> child_;
  bool left_ = false;
};

}  // namespace trireme
