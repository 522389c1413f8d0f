// RunLock makes sure that at most one run writes to a checkpoint folder. It is owned by rank 0's
// DiskTarget; a thread of its own keeps the lock fresh.
//
//   run.lock:   {"host", "pid", "boot_id", "start_time", "nonce", "job_id", "restart_count",
//                "launch", "attempt", "since"}\n<XXH3 of that line, 16 digits>\n
//
// The owner touches the file every LockTimes::refresh. A run that finds a lock
//   takes it over if its owner is on this host and dead: the host has booted since, the pid does
//     not exist, or it belongs to a process that started at another time;
//   takes it over if its owner is an earlier start of the same Slurm job, which Slurm has ended, or
//     an earlier attempt of the same launch, which the supervisor has ended or lost with its node;
//   takes it over if its owner is on another host and has not touched it for LockTimes::lease (by
//     the file system's clock);
//   takes it over with `force`, unless its owner is alive on this host;
//   else throws PolicyError that names the owner.
// An expired lease does not prove that the owner is dead. Therefore the owner checks right before
// each commit that the file is still its own: a run that has lost its lock commits nothing more. If
// the file system does not answer, the lock does not count as lost.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "io/checkpoint/generation.h"
#include "io/checkpoint/lock_owner.h"

namespace trireme {

struct LockTimes {
  std::chrono::milliseconds refresh{10'000};
  std::chrono::milliseconds lease{120'000};
};

struct LockHolder {
  std::string text;       // describes it
  bool is_alive = false;  // true if its process was seen on this host, false if that is unknown
};
// Returns the owner of the folder's lock unless there is no lock, its owner is known to be dead, or
// the lock was not touched for LockTimes::lease (by this host's clock). Reads only.
std::optional<LockHolder> lock_holder(const std::filesystem::path& folder, LockTimes times = {});

class RunLock {
 public:
  // Takes the lock of the folder, which must exist. Throws PolicyError if another run holds it.
  RunLock(const std::filesystem::path& folder, bool force, LockTimes times = {});
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;
  // Gives the lock back if it is still this run's.
  ~RunLock();
  // Gives the lock back before destruction; from now on no commit starts. Returns whether it was
  // given back within `limit`. If the file system hangs, the lock remains until another run finds
  // that its owner is dead.
  bool give_back(std::chrono::duration<double> limit);

  // Returns the generation, larger than that of every earlier run in this folder.
  std::int64_t generation() const { return generation_.number; }
  // Returns a description of damage that was found in the file GENERATION, or "".
  const std::string& warning() const { return generation_.warning; }
  // Throws PolicyError if another run has taken the lock over, IoError if the file can't be read
  // now. Any thread may call this and lost().
  void check_still_mine() const;
  bool lost() const;

 private:
  struct Keeper;

  bool try_to_take();
  void break_stale_lock(bool force);

  std::filesystem::path folder_;
  std::filesystem::path path_;
  LockTimes times_;
  LockOwner owner_;
  Generation generation_;
  std::unique_ptr<Keeper> keeper_;
  std::thread thread_;  // runs Keeper::work()
};

}  // namespace trireme
