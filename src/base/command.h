// Runs commands of other programs without a shell and with a deadline. A command that misses its
// deadline is ended together with its process group. Callable from any thread, but not in a
// process in which MPI or UCX is initialized.
#pragma once

#include <chrono>
#include <csignal>
#include <cstddef>
#include <string>
#include <vector>

namespace trireme {

struct CommandResult {
  // The exit code as in a shell: 128 + N for signal N, and 127 if there is no such program.
  int code = 0;
  bool late = false;   // ended at its deadline
  std::string output;  // stdout, up to kMostCommandOutput bytes
  std::string errors;  // stderr, up to the same size

  bool good() const { return code == 0 && !late; }
  // Describes the failure in one line: "squeue: exit code 1: slurm_load_jobs error", "squeue: no
  // answer in 5 s".
  std::string complaint(const std::string& name) const;

  double limit_seconds = 0;
};

inline constexpr std::size_t kMostCommandOutput = std::size_t{1} << 20;

// How a command is ended before its time. Without grace, it is killed (SIGKILL). Grace is for
// launchers, which have to end what they have started elsewhere: they get the signals, 3 s
// apart, and so many seconds first, and they are also ended if this process is interrupted
// (interruption.h).
struct CommandEnd {
  std::chrono::duration<double> grace{0};
  std::vector<int> signals = {SIGTERM};
};

// argv[0] is searched in PATH; stdin is empty. Does not throw if the command fails, but throws
// Interrupted if a command with grace is ended by an interruption.
CommandResult run_command(std::vector<std::string> argv, std::chrono::duration<double> limit,
                          const CommandEnd& end = {});

}  // namespace trireme
