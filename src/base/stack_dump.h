// StackDump makes each thread that receives SIGURG append its stack to a file and continue. It
// shows what a process without progress is doing before it is killed. The signal is SIGURG because
// a process without such an object ignores it. One per process; the first dump creates the file.
//
//   process 4711, thread 4712, at 1700000000 s
//   trireme(+0x1a2b3c)[0x55d0c1a2b3c]           addr2line -Cfie trireme 0x1a2b3c
//   ...
#pragma once

#include <csignal>
#include <filesystem>

#include <sys/types.h>

namespace trireme {

class StackDump {
 public:
  static constexpr int kSignal = SIGURG;

  // file: any path that fits into PATH_MAX; its folder must exist when the signal arrives.
  explicit StackDump(const std::filesystem::path& file);
  ~StackDump();
  StackDump(const StackDump&) = delete;
  StackDump& operator=(const StackDump&) = delete;
};

// Gives the calling thread a stack of its own for StackDump's signal, until the thread ends.
// Threads that compute need it, because the products of oneDNN use the stack pointer for data on
// the heap.
void use_signal_stack();

// Requests the stacks of all threads of a process that belongs to this user. Does not wait for
// them.
void ask_for_stacks(pid_t pid);

}  // namespace trireme
