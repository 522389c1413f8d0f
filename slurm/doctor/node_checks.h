// What one node can tell about a launch: limits, shared memory, folders. Each check returns its
// findings, with the node's name as `where`; none throws for what it finds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "slurm/doctor/finding.h"
#include "slurm/job/job_environment.h"

namespace trireme {

// A process's limits: kNoLimit where there is none.
struct ProcessLimits {
  static constexpr std::int64_t kNoLimit = -1;
  std::int64_t locked_bytes = kNoLimit;
  std::int64_t files = kNoLimit;
};
ProcessLimits process_limits();

// ranks: of the job. rdma: whether the node has devices that need registered, thus locked, memory.
std::vector<Finding> check_limits(const ProcessLimits& limits, int ranks, bool rdma,
                                  const std::string& node);

// A job that asks for more tasks than there are ranks: somebody forgot the launcher. Without a job
// nothing.
std::vector<Finding> check_tasks(const SlurmEnvironment& environment, int ranks,
                                 const std::string& node);

// What MPI and memory checkpoints need of /dev/shm. bytes: of this node's memory checkpoints;
// ranks: on this node.
std::vector<Finding> check_shared_memory(const std::filesystem::path& folder, std::int64_t bytes,
                                         int ranks, const std::string& node);

// mpirun refuses to start as root unless it is told twice that this is meant.
std::vector<Finding> check_user_of_mpirun(std::uint32_t user, const SlurmEnvironment& environment,
                                          const std::string& node);

// systemd's logind removes what a user has in /dev/shm when his last login session on the node
// ends, unless RemoveIPC=no: progress pages and memory checkpoints of a launch, too. System users
// are spared. root: where etc, run and usr are looked for.
std::vector<Finding> check_logind(const std::filesystem::path& root, std::uint32_t user,
                                  const std::string& node);

// A folder that the run will make or write in: whether a file can be made there, written, synced
// and renamed, and whether the bytes fit. The folder itself is not made; what is tried leaves
// nothing. key: the configuration's name for it.
std::vector<Finding> check_folder(const std::string& key, const std::filesystem::path& folder,
                                  std::int64_t bytes, const std::string& node);

// The deepest folder of the path that exists.
std::filesystem::path nearest_folder(const std::filesystem::path& path);

}  // namespace trireme
