// Reads facts from /proc about processes that are not our children: which belong to a launch, what
// state they are in, and whether the kernel has killed any for lack of memory.
//
// Command lines and process names are public, and anybody may choose them. Therefore a process of
// another user never counts as part of a launch, and one of this user counts only by its
// environment, which nobody else could have set, or if it is one of mpirun's own daemons.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "src/base/file.h"

namespace trireme {

// Returns nullopt if the process does not exist or is a zombie.
struct ProcessState {
  char letter = '?';  // of proc(5): R running, S sleeping, D blocked in the kernel, T stopped, ...
  std::int64_t start_ticks = 0;
};
std::optional<ProcessState> process_state(pid_t pid);

// Returns a variable of the environment with which the process was started.
std::optional<std::string> variable_of(pid_t pid, const std::string& name);

// OwnProcess is a live process of this user, held by a descriptor (pidfd_open(2)), so that a signal
// never reaches another process which has received the same pid.
class OwnProcess {
 public:
  // Returns nullopt if there is no such process or if any of its user ids is not this user's. All
  // are checked because a set-user-ID program has the real id and environment of whoever started
  // it.
  static std::optional<OwnProcess> open(pid_t pid);
  pid_t pid() const { return pid_; }
  // Returns whether it still exists. If so, everything that was read from /proc under its pid since
  // open() is about this process.
  bool exists() const { return signal(0); }
  void kill() const;

 private:
  OwnProcess(pid_t pid, int descriptor) : pid_(pid), descriptor_(descriptor) {}
  bool signal(int number) const;

  pid_t pid_;
  // Empty on kernels before 5.3, where signals go to the pid.
  UniqueHandle<FileDescriptorTraits> descriptor_;
};

// Returns the processes of this user that were started with TRIREME_LAUNCH_ID and TRIREME_NODE set
// to these values. An empty `node` matches all nodes.
std::vector<OwnProcess> processes_of_launch(const std::string& launch, const std::string& node);

// mpirun may leave daemons behind on other nodes. It marks them and everything they start with the
// setting `trireme_launch`, whose value is "<launch>.<attempt>". The mark is in their environment
// as OMPI_MCA_trireme_launch or, if ssh has dropped that, on the daemon's command line. Command
// lines prove nothing in general and are used for orted and prted only.
inline constexpr const char* kLaunchMark = "trireme_launch";
struct MarkedProcess {
  OwnProcess process;
  std::int64_t attempt = 0;
};
std::vector<MarkedProcess> marked_processes(const std::string& launch);

// Returns how many processes the kernel has killed for lack of memory since this machine was
// started (/proc/vmstat); 0 if unknown.
std::int64_t out_of_memory_kills();

}  // namespace trireme
