#include "io/checkpoint/run_lock.h"

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/checkpoint/generation.h"
#include "io/checkpoint/names.h"
#include "io/checkpoint/process.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/thread_error.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kMostLockBytes = 64 << 10;

std::chrono::nanoseconds modified(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    throw_errno(errno, "stat", path);
  }
  return std::chrono::seconds(status.st_mtim.tv_sec) +
         std::chrono::nanoseconds(status.st_mtim.tv_nsec);
}

// Says what is known about the owner of an existing lock.
enum class OwnerState { alive, gone, unknown };

OwnerState state_of(const LockOwner& standing, const LockOwner& ours) {
  if (standing.host == ours.host && !standing.boot_id.empty()) {
    const bool lives =
        standing.boot_id == ours.boot_id && process_start_time(standing.pid) == standing.start_time;
    return lives ? OwnerState::alive : OwnerState::gone;
  }
  const bool restarted = !ours.job_id.empty() && standing.job_id == ours.job_id &&
                         standing.restart_count < ours.restart_count;
  const bool relaunched =
      !ours.launch.empty() && standing.launch == ours.launch && standing.attempt < ours.attempt;
  return restarted || relaunched ? OwnerState::gone : OwnerState::unknown;
}

std::optional<std::string> read_if_there(const fs::path& path) {
  try {
    return read_file(path, kMostLockBytes);
  } catch (const NotFound&) {
    if (fs::is_symlink(fs::symlink_status(path))) {
      return "";  // it leads nowhere
    }
    return std::nullopt;
  } catch (const DataError&) {
    return "";  // the file is not a lock; its owner is unknown
  }
}

enum class Holding { mine, lost, unknown };

Holding holding(const fs::path& path, const std::string& nonce) {
  try {
    const std::optional<LockOwner> standing = parse_lock(read_file(path, kMostLockBytes));
    return standing && standing->nonce == nonce ? Holding::mine : Holding::lost;
  } catch (const NotFound&) {
    return Holding::lost;
  } catch (const DataError&) {
    return Holding::lost;
  } catch (const Error&) {
    return Holding::unknown;
  }
}

}  // namespace

std::optional<LockHolder> lock_holder(const fs::path& folder, LockTimes times) {
  const fs::path path = folder / kLockName;
  const std::optional<std::string> text = read_if_there(path);
  if (!text) {
    return std::nullopt;
  }
  const std::optional<LockOwner> owner = parse_lock(*text);
  const OwnerState state =
      owner ? state_of(*owner, LockOwner::this_process()) : OwnerState::unknown;
  if (state == OwnerState::alive) {
    return LockHolder{owner->describe() + ", which is alive on this host", true};
  }
  try {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    if (state == OwnerState::gone || now - modified(path) > times.lease) {
      return std::nullopt;
    }
  } catch (const NotFound&) {
    return std::nullopt;
  }
  return LockHolder{owner ? owner->describe() : "its lock is damaged or not a regular file", false};
}

// Touches the lock, notices if another run has taken it over, and gives it back at the end. Runs on
// RunLock::thread_.
struct RunLock::Keeper {
  fs::path path;
  std::string nonce;
  std::chrono::milliseconds refresh;
  std::atomic<bool> lost = false;
  std::atomic<bool> given_back = false;
  std::mutex mutex;  // guards the members below
  std::condition_variable changed;
  bool stop = false;
  bool ended = false;

  std::thread start() {
    try {
      return std::thread([this] { work(); });
    } catch (const std::system_error& error) {
      throw ResourceError(path.string() + ": " + no_thread("to refresh the lock", error));
    }
  }

  void work() {
    std::unique_lock<std::mutex> lock(mutex);
    while (!changed.wait_for(lock, refresh, [this] { return stop; })) {
      lock.unlock();
      const Holding now = lost ? Holding::lost : holding(path, nonce);
      lost = now == Holding::lost;
      if (now == Holding::mine) {
        (void)::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
      }
      lock.lock();
    }
    lock.unlock();
    if (!lost && holding(path, nonce) == Holding::mine) {
      ::unlink(path.c_str());
    }
    lock.lock();
    ended = true;
    changed.notify_all();
  }
};

RunLock::RunLock(const fs::path& folder, bool force, LockTimes times)
    : folder_(folder), path_(folder / kLockName), times_(times), owner_(LockOwner::this_process()) {
  for (int attempt = 0; !try_to_take(); ++attempt) {
    if (attempt == 10) {
      throw PolicyError(
          fmt::format("{} keeps changing its owner: several runs are competing for this checkpoint "
                      "folder. Stop all but one",
                      path_.string()));
    }
    break_stale_lock(force);
  }
  try {
    generation_ = next_generation(folder_);
    keeper_ = std::make_unique<Keeper>();
    keeper_->path = path_;
    keeper_->nonce = owner_.nonce;
    keeper_->refresh = times_.refresh;
    thread_ = keeper_->start();
  } catch (...) {
    ::unlink(path_.c_str());
    throw;
  }
}

RunLock::~RunLock() {
  {
    const std::lock_guard<std::mutex> lock(keeper_->mutex);
    keeper_->stop = true;
    keeper_->changed.notify_all();
  }
  thread_.join();
}

bool RunLock::give_back(std::chrono::duration<double> limit) {
  keeper_->given_back = true;
  std::unique_lock<std::mutex> lock(keeper_->mutex);
  keeper_->stop = true;
  keeper_->changed.notify_all();
  return keeper_->changed.wait_for(lock, limit, [this] { return keeper_->ended; });
}

bool RunLock::lost() const {
  return keeper_->lost || holding(path_, owner_.nonce) == Holding::lost;
}

// link(2) either creates the finished file under its final name or fails, also on NFS.
bool RunLock::try_to_take() {
  const fs::path draft = fmt::format("{}.{}", path_.string(), owner_.nonce);
  ::unlink(draft.c_str());
  File file = File::create_new(draft);
  const std::string text = to_text(owner_);
  const auto remove_draft = [&] { ::unlink(draft.c_str()); };
  try {
    file.write(text.data(), static_cast<std::int64_t>(text.size()));
    file.sync();
    file.close();
  } catch (...) {
    remove_draft();
    throw;
  }
  const int result = ::link(draft.c_str(), path_.c_str());
  const int code = errno;
  remove_draft();
  // ENOENT means that the lock's owner cleaned up the folder at the same time and deleted our
  // draft.
  if (result != 0 && code != EEXIST && code != ENOENT) {
    throw_errno(code, "create", path_);
  }
  if (result == 0) {
    sync_directory(folder_);
  }
  return result == 0;
}

void RunLock::break_stale_lock(bool force) {
  const std::optional<std::string> text = read_if_there(path_);
  if (!text) {
    return;  // its owner has just given it back
  }
  // The times of a new file and of the lock come from the same clock, that of the file system.
  const fs::path aside = fmt::format("{}.stale-{}", path_.string(), owner_.nonce);
  File::create_new(aside).close();
  bool lease_over = false;
  try {
    lease_over = modified(aside) - modified(path_) > times_.lease;
  } catch (const NotFound&) {
    ::unlink(aside.c_str());
    return;  // its owner has just given it back
  }
  ::unlink(aside.c_str());
  const std::optional<LockOwner> standing = parse_lock(*text);
  const OwnerState state = standing ? state_of(*standing, owner_) : OwnerState::unknown;
  if (state == OwnerState::alive) {
    throw PolicyError(
        fmt::format("another run writes to {}: {}, which is alive on this host. Stop it first, or "
                    "choose another checkpoint folder ({} is removed when that run ends)",
                    folder_.string(), standing->describe(), path_.string()));
  }
  if (state == OwnerState::unknown && !lease_over && !force) {
    const std::string owner =
        standing
            ? fmt::format("another run writes to {}: {}", folder_.string(), standing->describe())
            : fmt::format(
                  "another run may be writing to {}: its lock is damaged or not a "
                  "regular file",
                  folder_.string());
    throw PolicyError(fmt::format(
        "{}. Stop it, or choose another checkpoint folder; if you are sure that it is dead, start "
        "with checkpoint.force_lock=true or wait until {} has not been refreshed for {} s",
        owner, path_.string(),
        std::chrono::duration_cast<std::chrono::seconds>(times_.lease).count()));
  }
  // If several runs find the same stale lock, only one can rename it. A run that has caught a newer
  // lock instead puts it back.
  if (::rename(path_.c_str(), aside.c_str()) != 0) {
    return;
  }
  if (read_if_there(aside) != text) {
    (void)::link(aside.c_str(), path_.c_str());
  }
  ::unlink(aside.c_str());
}

void RunLock::check_still_mine() const {
  const Holding now =
      keeper_->lost || keeper_->given_back ? Holding::lost : holding(path_, owner_.nonce);
  if (now == Holding::lost) {
    throw PolicyError(
        fmt::format("this run no longer holds {}: another run has taken over the folder, or the "
                    "lock was removed or damaged. This run commits no more checkpoints; make sure "
                    "that only one run uses the folder",
                    path_.string()));
  }
  if (now == Holding::unknown) {
    throw IoError(
        fmt::format("{} cannot be read at the moment, so it is unknown whether this run still owns "
                    "the folder: the save is not committed",
                    path_.string()));
  }
}

}  // namespace trireme
