// RunLock: at most one run writes to a checkpoint folder.
//
//   run.lock:   {"host", "pid", "boot_id", "start_time", "nonce", "job_id", "restart_count",
//                "launch", "attempt", "since"}\n<XXH3 of that line, 16 digits>\n
//
// Whoever holds it touches the file every LockTimes::refresh. A lock that stands already is
//   taken over if its owner is on this host and gone: other boot, no such pid, or a pid that
//     started at another time; or if it is an
//     earlier start of the same Slurm job, which Slurm has ended, or an earlier attempt of the same
//     launch, whose supervisor has ended it or lost its node;
//   taken over if it is not of this host and was not touched for LockTimes::lease (by the file
//   system's clock); taken over with `force`, unless its owner is seen alive on this host; else
//   respected: PolicyError with its owner.
// Since no lease is proof, the owner makes sure right before each commit that the file is still its
// own: a run whose lock was taken over commits nothing more. A file system that does not answer
// right now takes no lock away. Owned by rank 0's CheckpointWriter.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>

namespace trireme {

struct LockOwner {
  std::string host;
  std::int64_t pid = 0;
  std::string boot_id;
  std::int64_t start_time = 0;  // of the process, in clock ticks since boot
  std::string nonce;
  std::string job_id;              // Slurm's; empty outside a job
  std::int64_t restart_count = 0;  // of that job
  std::string launch;              // of `trireme launch`; empty outside of one
  std::int64_t attempt = 0;        // the launch's number of it (TRIREME_GENERATION)
  std::string since;               // for people

  // Of this process and, from the environment, its Slurm job; with a fresh nonce.
  static LockOwner this_process();
  // "host n3, process 4711, Slurm job 99 (since ...)"
  std::string describe() const;
};

std::string to_text(const LockOwner& owner);
// Nothing if the text is damaged.
std::optional<LockOwner> parse_lock(std::string_view text);

struct LockTimes {
  std::chrono::milliseconds refresh{10'000};
  std::chrono::milliseconds lease{120'000};
};

// Describes the owner of the folder's lock unless there is no lock, its owner is known to be dead,
// or the lock was not touched for LockTimes::lease (by this host's clock). Reads only.
std::optional<std::string> lock_holder(const std::filesystem::path& folder, LockTimes times = {});

class RunLock {
 public:
  // Takes the lock of the folder, which exists, or throws PolicyError.
  RunLock(const std::filesystem::path& folder, bool force, LockTimes times = {});
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;
  // Gives the lock back, if it is still this run's.
  ~RunLock();
  // The same, before: no commit begins from now on. Whether it was done within `limit`; a file
  // system that hangs keeps the lock, which its owner's death then opens.
  bool give_back(std::chrono::duration<double> limit);

  // Larger than that of every run before on this folder; kept in the file GENERATION.
  std::int64_t generation() const { return generation_; }
  // PolicyError if another run has taken over, IoError if that can't be told now. Any thread.
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
  std::int64_t generation_ = 0;
  std::unique_ptr<Keeper> keeper_;
  std::thread thread_;  // the keeper's
};

}  // namespace trireme
