#include "slurm/doctor/node_checks.h"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/base/units.h"

namespace trireme {
namespace {

// Open MPI's shared-memory transport, which MPI falls back to, takes about 4 MiB a rank.
constexpr std::int64_t kLeastShared = std::int64_t{64} << 20;
// Of a process: libraries, logs, shards, the program's own connections.
constexpr std::int64_t kOwnFiles = 256;
constexpr std::int64_t kFilesAPeer = 3;
// Registered buffers of a rank with RDMA devices.
constexpr std::int64_t kLeastLocked = std::int64_t{1} << 30;

std::int64_t soft_limit(__rlimit_resource resource) {
  struct rlimit limit {};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return ProcessLimits::kNoLimit;
  }
  return static_cast<std::int64_t>(limit.rlim_cur);
}

Finding failure(const std::string& what, ExitCode code, const std::string& node,
                const std::string& remedy) {
  return {Severity::error, code, what, node, remedy};
}

// Makes, fills, syncs and renames a small file.
void try_folder(const std::filesystem::path& folder) {
  const std::filesystem::path file =
      folder / fmt::format(".trireme-doctor-{}-{}", ::getpid(), ::gethostid());
  std::error_code ignored;
  try {
    write_file_durably(file, "trireme doctor\n");
  } catch (...) {
    std::filesystem::remove(file, ignored);
    throw;
  }
  std::filesystem::remove(file, ignored);
}

}  // namespace

ProcessLimits process_limits() { return {soft_limit(RLIMIT_MEMLOCK), soft_limit(RLIMIT_NOFILE)}; }

std::vector<Finding> check_limits(const ProcessLimits& limits, int ranks, bool rdma,
                                  const std::string& node) {
  std::vector<Finding> found;
  const std::int64_t files = kOwnFiles + kFilesAPeer * ranks;
  if (limits.files != ProcessLimits::kNoLimit && limits.files < files) {
    found.push_back(
        failure(fmt::format("a process may open {} files; {} ranks over TCP need up to {}",
                            limits.files, ranks, files),
                ExitCode::usage, node,
                fmt::format("ulimit -n {} in the job script, or raise nofile in "
                            "/etc/security/limits.conf or slurmd's LimitNOFILE",
                            files)));
  }
  if (rdma && limits.locked_bytes != ProcessLimits::kNoLimit &&
      limits.locked_bytes < kLeastLocked) {
    found.push_back(warning_of(
        fmt::format("a process may lock {} of memory; the RDMA devices here need it without limit",
                    format_bytes(limits.locked_bytes)),
        node,
        "ulimit -l unlimited: memlock in /etc/security/limits.conf, LimitMEMLOCK of slurmd, and "
        "PropagateResourceLimitsExcept=MEMLOCK in slurm.conf"));
  }
  return found;
}

std::vector<Finding> check_tasks(const SlurmEnvironment& environment, int ranks,
                                 const std::string& node) {
  const std::optional<SlurmJob> job = slurm_job(environment);
  if (!job || ranks > 1 || job->tasks <= 1) {
    return {};
  }
  return {
      warning_of(fmt::format("job {} has {} tasks, and one rank was started", job->id, job->tasks),
                 node, "start it with mpirun, or with srun --mpi=pmix")};
}

std::vector<Finding> check_shared_memory(const std::filesystem::path& folder, std::int64_t bytes,
                                         const std::string& node) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(folder, error);
  if (error) {
    return {failure(fmt::format("{} can't be used: {}", folder.string(), error.message()),
                    ExitCode::device, node, "mount a tmpfs there")};
  }
  const auto available = static_cast<std::int64_t>(space.available);
  if (available < bytes) {
    return {
        failure(fmt::format("{} has {} free; the node's memory checkpoints take {}",
                            folder.string(), format_bytes(available), format_bytes(bytes)),
                ExitCode::io, node,
                "raise its size (mount -o remount,size=...), or set checkpoint.memory_every=0")};
  }
  if (available < kLeastShared) {
    return {warning_of(fmt::format("{} has {} free: MPI's shared memory may not fit",
                                   folder.string(), format_bytes(available)),
                       node, "raise its size (mount -o remount,size=..., docker --shm-size)")};
  }
  return {};
}

std::filesystem::path nearest_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  std::filesystem::path at = std::filesystem::absolute(path, ignored).lexically_normal();
  while (!std::filesystem::is_directory(at, ignored) && at.has_relative_path()) {
    at = at.parent_path();
  }
  return at;
}

std::vector<Finding> check_folder(const std::string& key, const std::filesystem::path& folder,
                                  std::int64_t bytes, const std::string& node) {
  const std::filesystem::path there = nearest_folder(folder);
  std::error_code ignored;
  if (there != folder && std::filesystem::exists(there / folder.filename(), ignored) &&
      !std::filesystem::is_directory(folder, ignored)) {
    return {failure(fmt::format("{} is {}, which is no folder", key, folder.string()),
                    ExitCode::usage, node, fmt::format("choose another {}", key))};
  }
  try {
    try_folder(there);
    const std::int64_t available = free_bytes(there);
    if (available < bytes) {
      return {failure(fmt::format("{} ({}) has {} free; the run needs {}", key, there.string(),
                                  format_bytes(available), format_bytes(bytes)),
                      ExitCode::io, node, fmt::format("make room, or choose another {}", key))};
    }
  } catch (const Error& error) {
    return {failure(fmt::format("{} can't be written: {}", key, error.what()), error.exit_code(),
                    node, fmt::format("choose a {} that all nodes may write", key))};
  }
  return {};
}

}  // namespace trireme
