// What /proc tells about processes that are not our children: which belong to a launch, what state
// they are in, whether the kernel has killed any for lack of memory. Functions of the machine's
// state.
//
// Command lines and names are public, and anybody may choose them: a process of another user never
// counts as part of a launch, and one of this user only by its environment, which nobody else could
// have set, or as one of mpirun's own daemons.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "src/base/file.h"

namespace trireme {

// Nothing if there is no such process, or only its remains (a zombie).
struct ProcessState {
  char letter = '?';  // proc(5): R running, S sleeping, D in the kernel, T stopped, ...
  std::int64_t start_ticks = 0;
};
std::optional<ProcessState> process_state(pid_t pid);

// A variable of the environment that the process was started with.
std::optional<std::string> variable_of(pid_t pid, const std::string& name);

// OwnProcess: a live process of this user, held by a descriptor (pidfd_open(2)): a signal reaches
// this process or none, even where its number has been given to another one since.
class OwnProcess {
 public:
  // Nothing where there is no such process, or where any of its user IDs is not this user's: a
  // set-user-ID program that somebody else has started has their real ID, and their environment.
  static std::optional<OwnProcess> open(pid_t pid);
  pid_t pid() const { return pid_; }
  // Whether it still exists: what was read from /proc under its number since open() is about it.
  bool exists() const { return signal(0); }
  void kill() const;

 private:
  OwnProcess(pid_t pid, int descriptor) : pid_(pid), descriptor_(descriptor) {}
  bool signal(int number) const;

  pid_t pid_;
  UniqueHandle<FileDescriptorTraits> descriptor_;  // none: by the number, on a kernel before 5.3
};

// Processes of this user that were started with both: TRIREME_LAUNCH_ID and TRIREME_NODE. With an
// empty node: those of all nodes.
std::vector<OwnProcess> processes_of_launch(const std::string& launch, const std::string& node);

// mpirun marks its daemons on other nodes, which it may leave behind, and everything they start,
// with the setting `trireme_launch` of its own: the launch's number, a dot, and the attempt's. It
// is in their environment as OMPI_MCA_trireme_launch, or, where ssh has dropped that, on the
// daemon's command line. A command line alone proves nothing: it counts for orted and prted only.
inline constexpr const char* kLaunchMark = "trireme_launch";
struct MarkedProcess {
  OwnProcess process;
  std::int64_t generation = 0;
};
std::vector<MarkedProcess> marked_processes(const std::string& launch);

// How often the kernel has killed for lack of memory since this machine was started (/proc/vmstat);
// 0 where it does not say.
std::int64_t out_of_memory_kills();

}  // namespace trireme
