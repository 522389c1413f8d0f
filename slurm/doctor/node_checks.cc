#include "slurm/doctor/node_checks.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <map>

#include <pwd.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/base/log.h"
#include "src/base/units.h"

namespace trireme {
namespace {

// Open MPI's shared-memory transport, to which MPI falls back, uses about 4 MiB per rank.
constexpr std::int64_t kLeastShared = std::int64_t{64} << 20;
constexpr std::int64_t kSharedARank = std::int64_t{4} << 20;
// Files that a process opens besides its connections to peers: libraries, logs, shards.
constexpr std::int64_t kOwnFiles = 256;
constexpr std::int64_t kFilesAPeer = 3;
// Memory that a rank locks for the registered buffers of RDMA devices.
constexpr std::int64_t kLeastLocked = std::int64_t{1} << 30;
// What mpirun, a launch and the smallest run need. The journal, the logs and a checkpoint of a run
// are larger files than that.
constexpr std::int64_t kLeastFiles = 64;
constexpr std::int64_t kLeastFileBytes = std::int64_t{1} << 20;
constexpr std::int64_t kLeastAddresses = std::int64_t{400} << 20;
constexpr std::int64_t kLeastStack = std::int64_t{256} << 10;

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

constexpr std::uint32_t kLastSystemUser = 999;  // Debian's SYS_UID_MAX; logind's own limit

// Returns "" if no user has this id.
std::string user_name(std::uint32_t user) {
  struct passwd entry {};
  struct passwd* found = nullptr;
  std::array<char, 4096> text{};
  ::getpwuid_r(user, &entry, text.data(), text.size(), &found);
  return found == nullptr ? "" : entry.pw_name;
}

// Returns the value of the last `RemoveIPC=` in a systemd configuration file, or `before` if the
// file sets none.
bool removes_ipc(const std::filesystem::path& file, bool before) {
  constexpr std::string_view kKey = "RemoveIPC=";
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kKey)) {
      std::string value = line.substr(kKey.size());
      std::transform(value.begin(), value.end(), value.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      before = value.starts_with('y') || value.starts_with('t') || value.starts_with('1') ||
               value.starts_with("on");
    }
  }
  return before;
}

// Reads the main file and then the files of the *.d folders, sorted by name. If several folders
// have a file of the same name, the folder with the highest priority provides it.
bool logind_removes_ipc(const std::filesystem::path& root) {
  std::map<std::string, std::filesystem::path> parts;
  for (const char* folder : {"etc", "run", "usr/local/lib", "usr/lib"}) {
    std::error_code none;
    const auto path = root / folder / "systemd/logind.conf.d";
    for (const auto& entry : std::filesystem::directory_iterator(path, none)) {
      if (entry.path().extension() == ".conf") {
        parts.emplace(entry.path().filename(), entry.path());
      }
    }
  }
  bool removes = removes_ipc(root / "etc/systemd/logind.conf", true);
  for (const auto& [name, path] : parts) {
    removes = removes_ipc(path, removes);
  }
  return removes;
}

// Makes, fills, syncs and renames a small file.
void try_folder(const std::filesystem::path& folder) {
  // The file name contains the host name, since many hosts share a hostid and containers share
  // pids.
  const std::filesystem::path file =
      folder / fmt::format(".trireme-doctor-{}-{}", ::getpid(), host_name());
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

ProcessLimits process_limits() {
  return {soft_limit(RLIMIT_MEMLOCK), soft_limit(RLIMIT_NOFILE), soft_limit(RLIMIT_FSIZE),
          soft_limit(RLIMIT_AS), soft_limit(RLIMIT_STACK)};
}

std::vector<Finding> check_least_limits(const ProcessLimits& limits, const std::string& node) {
  std::vector<Finding> found;
  const auto check = [&](std::int64_t limit, std::int64_t least, const std::string& what,
                         const std::string& remedy) {
    if (limit != ProcessLimits::kNoLimit && limit < least) {
      found.push_back(failure(what, ExitCode::usage, node, remedy));
    }
  };
  check(limits.files, kLeastFiles,
        fmt::format("a process may open only {} files (ulimit -n), but even the smallest run needs "
                    "{}",
                    limits.files, kLeastFiles),
        "run 'ulimit -n 1024' first, or raise nofile in /etc/security/limits.conf or LimitNOFILE "
        "of slurmd");
  check(limits.file_bytes, kLeastFileBytes,
        fmt::format("a process may write files of only {} (ulimit -f), but logs and checkpoints "
                    "are larger",
                    format_bytes(limits.file_bytes)),
        "run 'ulimit -f unlimited' first, or raise fsize in /etc/security/limits.conf or "
        "LimitFSIZE of slurmd");
  check(limits.address_bytes, kLeastAddresses,
        fmt::format("a process may use only {} of address space (ulimit -v), but mpirun and the "
                    "ranks need {}, and more for larger models",
                    format_bytes(limits.address_bytes), format_bytes(kLeastAddresses)),
        "run 'ulimit -v unlimited' first, or raise as in /etc/security/limits.conf or LimitAS of "
        "slurmd");
  check(limits.stack_bytes, kLeastStack,
        fmt::format("a thread may use only {} of stack (ulimit -s), but kernels need {}",
                    format_bytes(limits.stack_bytes), format_bytes(kLeastStack)),
        "run 'ulimit -s 8192' first, or raise stack in /etc/security/limits.conf or LimitSTACK of "
        "slurmd");
  return found;
}

std::vector<Finding> check_limits(const ProcessLimits& limits, int ranks, bool rdma,
                                  const std::string& node) {
  std::vector<Finding> found = check_least_limits(limits, node);
  const std::int64_t files = kOwnFiles + kFilesAPeer * ranks;
  if (limits.files != ProcessLimits::kNoLimit && limits.files < files &&
      limits.files >= kLeastFiles) {
    found.push_back(failure(
        fmt::format("a process may open only {} files, but a run of {} over TCP needs up to {}",
                    limits.files, counted(ranks, "rank"), files),
        ExitCode::usage, node,
        fmt::format("run 'ulimit -n {}' in the job script, or raise nofile in "
                    "/etc/security/limits.conf or LimitNOFILE of slurmd",
                    files)));
  }
  if (rdma && limits.locked_bytes != ProcessLimits::kNoLimit &&
      limits.locked_bytes < kLeastLocked) {
    found.push_back(warning_of(fmt::format("a process may lock only {} of memory, but the RDMA "
                                           "devices here need an unlimited amount",
                                           format_bytes(limits.locked_bytes)),
                               node,
                               "raise 'ulimit -l' to unlimited: memlock in "
                               "/etc/security/limits.conf, LimitMEMLOCK of slurmd, and "
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
  return {warning_of(
      fmt::format("job {} has {} tasks, but only one rank was started", job->id, job->tasks), node,
      "start the ranks with mpirun, or with srun --mpi=pmix")};
}

std::vector<Finding> check_shared_memory(const std::filesystem::path& folder, std::int64_t bytes,
                                         int ranks, const std::string& node) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(folder, error);
  if (error) {
    return {failure(fmt::format("cannot use {}: {}", folder.string(), error.message()),
                    ExitCode::device, node, "mount a tmpfs there")};
  }
  const auto available = static_cast<std::int64_t>(space.available);
  if (available < bytes) {
    return {
        failure(fmt::format("{} has {} free, but the checkpoints in this node's memory need {}",
                            folder.string(), format_bytes(available), format_bytes(bytes)),
                ExitCode::io, node,
                "raise its size (mount -o remount,size=...), or set checkpoint.memory_every=0")};
  }
  if (available < std::max(kLeastShared, kSharedARank * ranks)) {
    return {warning_of(fmt::format("{} has {} free: MPI's shared memory may not fit",
                                   folder.string(), format_bytes(available)),
                       node, "raise its size (mount -o remount,size=..., docker --shm-size)")};
  }
  return {};
}

std::vector<Finding> check_user_of_mpirun(std::uint32_t user, const SlurmEnvironment& environment,
                                          const std::string& node) {
  const bool allowed = environment("OMPI_ALLOW_RUN_AS_ROOT") == "1" &&
                       environment("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM") == "1";
  if (user != 0 || allowed) {
    return {};
  }
  return {warning_of("mpirun refuses to run as root", node,
                     "run as another user, or set OMPI_ALLOW_RUN_AS_ROOT=1 and "
                     "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")};
}

std::vector<Finding> check_logind(const std::filesystem::path& root, std::uint32_t user,
                                  const std::string& node) {
  std::error_code none;
  // The first folder exists only where systemd is the init system (sd_booted(3)). A container
  // without it may still have the second one.
  const bool runs = std::filesystem::exists(root / "run/systemd/system", none) &&
                    std::filesystem::exists(root / "run/systemd/sessions", none);
  const std::string name = user_name(user);
  const bool lingers =
      !name.empty() && std::filesystem::exists(root / "var/lib/systemd/linger" / name, none);
  if (!runs || lingers || user <= kLastSystemUser || !logind_removes_ipc(root)) {
    return {};
  }
  return {warning_of(
      "logind removes your files in /dev/shm when your last login session on this node ends: if "
      "you log in to the node during a launch, the checkpoints in its memory are lost when you log "
      "out",
      node, "set RemoveIPC=no in /etc/systemd/logind.conf, or run 'loginctl enable-linger'")};
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
  const std::filesystem::path whole = std::filesystem::absolute(folder, ignored).lexically_normal();
  const std::filesystem::path next = there / *whole.lexically_relative(there).begin();
  if (std::filesystem::exists(next, ignored) && !std::filesystem::is_directory(next, ignored)) {
    return {failure(
        fmt::format("{} is {}, but {} is not a folder", key, folder.string(), next.string()),
        ExitCode::usage, node, fmt::format("choose another {}", key))};
  }
  try {
    try_folder(there);
    const std::int64_t available = free_bytes(there);
    if (available < bytes) {
      return {failure(fmt::format("{} ({}) has {} free, but the run needs {}", key, there.string(),
                                  format_bytes(available), format_bytes(bytes)),
                      ExitCode::io, node, fmt::format("make room, or choose another {}", key))};
    }
  } catch (const Error& error) {
    // As in /proc, or on a file system that is mounted read-only.
    const bool is_wrong = error.exit_code() == ExitCode::not_found || is_read_only(there);
    return {failure(fmt::format("cannot write to {}: {}", key, error.what()),
                    is_wrong ? ExitCode::usage : error.exit_code(), node,
                    fmt::format("choose a {} that all nodes can write to", key))};
  }
  return {};
}

}  // namespace trireme
