// StackDump: on SIGURG a thread of this process appends where it is to a file, and goes on: for a
// process that makes no progress, before it is ended from outside. SIGURG, because a process that
// has no such object ignores it. One per process; the file appears with the first dump.
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

  // Any path that fits PATH_MAX; its folder has to be there when the signal comes.
  explicit StackDump(const std::filesystem::path& file);
  ~StackDump();
  StackDump(const StackDump&) = delete;
  StackDump& operator=(const StackDump&) = delete;
};

// Asks every thread of a process, ours or another of this user's, for its stack. Does not wait.
void ask_for_stacks(pid_t pid);

}  // namespace trireme
