// Makes the checks that one node can make for a launch: limits, shared memory, folders. Each check
// returns its findings, with the node's name as `where`; none throws because of what it finds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "slurm/doctor/finding.h"
#include "slurm/job/job_environment.h"

namespace trireme {

// Holds limits of a process; kNoLimit means unlimited.
struct ProcessLimits {
  static constexpr std::int64_t kNoLimit = -1;
  std::int64_t locked_bytes = kNoLimit;
  std::int64_t files = kNoLimit;
  std::int64_t file_bytes = kNoLimit;
  std::int64_t address_bytes = kNoLimit;
  std::int64_t stack_bytes = kNoLimit;
};
ProcessLimits process_limits();

// Finds the limits under which mpirun, or any run however small, would fail with messages that do
// not name the limit. All findings are errors.
std::vector<Finding> check_least_limits(const ProcessLimits& limits, const std::string& node);

// Includes check_least_limits(). ranks: number of ranks in the job. rdma: whether the node has
// devices that need registered, and therefore locked, memory.
std::vector<Finding> check_limits(const ProcessLimits& limits, int ranks, bool rdma,
                                  const std::string& node);

// Warns about a job with more tasks than ranks, where the user has probably forgotten the launcher.
// Finds nothing outside a Slurm job.
std::vector<Finding> check_tasks(const SlurmEnvironment& environment, int ranks,
                                 const std::string& node);

// Checks that /dev/shm has room for MPI and for checkpoints in memory. bytes: size of this node's
// checkpoints in memory; ranks: number of ranks on this node.
std::vector<Finding> check_shared_memory(const std::filesystem::path& folder, std::int64_t bytes,
                                         int ranks, const std::string& node);

// Warns that mpirun refuses to start as root unless two environment variables allow it.
std::vector<Finding> check_user_of_mpirun(std::uint32_t user, const SlurmEnvironment& environment,
                                          const std::string& node);

// systemd's logind removes a user's files in /dev/shm when the last login session on the node ends,
// unless RemoveIPC=no is set. That includes progress pages and checkpoints in memory. System users
// are exempt. root: the folder that contains etc, run and usr.
std::vector<Finding> check_logind(const std::filesystem::path& root, std::uint32_t user,
                                  const std::string& node);

// Checks a folder that the run will create or write to: whether a file can be made, written, synced
// and renamed there, and whether `bytes` fit. The folder itself is not created, and the check
// leaves no file. key: the configuration key that names the folder.
std::vector<Finding> check_folder(const std::string& key, const std::filesystem::path& folder,
                                  std::int64_t bytes, const std::string& node);

// Returns the deepest existing folder of the path.
std::filesystem::path nearest_folder(const std::filesystem::path& path);

}  // namespace trireme
