// What /proc tells about processes that are not our children: which belong to a launch, how they
// stand, whether the kernel killed any for want of memory. Functions of the machine's state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace trireme {

// Nothing if there is no such process, or just its remains (a zombie).
struct ProcessState {
  char letter = '?';  // proc(5): R running, S sleeping, D in the kernel, T stopped, ...
  std::int64_t start_ticks = 0;
};
std::optional<ProcessState> process_state(pid_t pid);

// A variable of the environment that the process was started with.
std::optional<std::string> variable_of(pid_t pid, const std::string& name);

// Processes of this user that were started with both: TRIREME_LAUNCH_ID and TRIREME_NODE. Without a
// node: of all nodes.
std::vector<pid_t> processes_of_launch(const std::string& launch, const std::string& node);

// mpirun marks its daemons on other nodes, which it may leave behind, and all that they start: the
// setting `trireme_launch` of its own (on their command line, or as OMPI_MCA_trireme_launch), with
// the launch's number, a dot, and the attempt's.
inline constexpr const char* kLaunchMark = "trireme_launch";
struct MarkedProcess {
  pid_t pid = 0;
  std::int64_t generation = 0;
};
std::vector<MarkedProcess> marked_processes(const std::string& launch);

// How often the kernel killed for want of memory since this machine was started (/proc/vmstat); 0
// where it does not say.
std::int64_t out_of_memory_kills();

}  // namespace trireme
