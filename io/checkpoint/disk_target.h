// DiskTarget: the checkpoint folder on a file system that all nodes share, as a run saves to it.
// Each rank writes, digests, syncs and reads back its shard (shard_file.h); rank 0 writes the
// manifest and renames (commit.h), and then deletes what retention lets go. Holds the run's lock of
// the folder. The memory of a snapshot is kept from save to save.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>

#include "io/checkpoint/run_lock.h"
#include "io/checkpoint/save_target.h"
#include "io/checkpoint/shard_file.h"
#include "io/checkpoint/staging.h"
#include "io/checkpoint/store.h"
#include "io/checkpoint/workers.h"
#include "mpi/communicator.h"

namespace trireme {

struct DiskOptions {
  std::filesystem::path folder;  // shared by all ranks; made if it is not there
  bool force = false;            // take the lock from an owner that may live elsewhere
  Retention retention = {};
  ShardIo io = {};
  int copy_threads = 0;  // of a snapshot; 0: all processors that this process may use
  std::string software = "trireme";
  LockTimes lock = {};
};

class DiskTarget final : public SaveTarget {
 public:
  // Collective. Takes the folder's run lock and cleans up after earlier runs; all ranks throw alike
  // if that fails: PolicyError for a second run, IoError for a folder that can't be written.
  DiskTarget(Communicator& comm, DiskOptions options);

  // Takes and touches the memory of a snapshot of such blocks, so that the first save need not.
  void reserve(std::span<const TensorBlock> blocks);
  // Of that memory.
  std::int64_t snapshot_bytes() const { return image_.bytes(); }
  // The same on all ranks.
  std::int64_t generation() const { return generation_; }
  // Before its end, and after the writer's quiet_within(). Whether nothing is being deleted, after
  // so long at most, and the folder's lock is given back; of old checkpoints that are still to be
  // deleted some may stay. One that is not quiet is left to itself: it begins no commit any more.
  // Not collective.
  bool quiet_within(std::chrono::duration<double> limit);

  void begin(std::int64_t step) override { step_ = step; }
  Snapshot take(std::span<const TensorBlock> blocks) override;
  std::optional<StoredShard> write(const Snapshot& snapshot) override;
  void before_gather() override;
  bool commits() const override { return rank_ == 0; }
  std::string commit(Manifest manifest) override;
  std::string settle(bool durable) override;
  bool lost() const override { return lock_ != nullptr && lock_->lost(); }
  std::filesystem::path attempt_folder() const override;

 private:
  void reserve_image(std::int64_t bytes);
  std::string remove_attempt() const;
  std::string start_retention();
  void delete_old_steps();

  DiskOptions options_;
  int rank_;
  std::unique_ptr<RunLock> lock_;  // rank 0's
  std::int64_t generation_ = 0;
  std::int64_t step_ = 0;
  PageBuffer image_;  // of the latest snapshot
  std::mutex names_;  // of steps: whoever renames one holds it
  std::atomic<bool> ending_ = false;
  BackgroundJob retention_;  // last: ends before what it uses
};

}  // namespace trireme
