// Commands of other programs: started without a shell, with a deadline. A command that is late is
// killed with all that it has started in its process group. Any thread; not in a process in which
// MPI or UCX is up.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace trireme {

struct CommandResult {
  // As a shell says it: 128 + N for signal N; 127: there is no such program.
  int code = 0;
  bool late = false;   // killed at its deadline
  std::string output;  // stdout, up to kMostCommandOutput bytes
  std::string errors;  // stderr, as much

  bool good() const { return code == 0 && !late; }
  // One line for people: "squeue: exit code 1: slurm_load_jobs error", "squeue: no answer in 5 s".
  std::string complaint(const std::string& name) const;

  double limit_seconds = 0;
};

inline constexpr std::size_t kMostCommandOutput = std::size_t{1} << 20;

// argv[0] is looked for in PATH; stdin is empty. Never throws for what the command does.
CommandResult run_command(std::vector<std::string> argv, std::chrono::duration<double> limit);

}  // namespace trireme
