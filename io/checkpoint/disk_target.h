// DiskTarget saves to the checkpoint folder, on a file system that all nodes share. Each rank
// writes, digests, syncs and reads back its shard (shard_file.h); rank 0 writes the manifest,
// renames the step's folder (commit.h), and then deletes old steps as retention allows. Rank 0
// holds the run's lock of the folder. The memory of a snapshot is reused from save to save.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>

#include "io/checkpoint/commit.h"
#include "io/checkpoint/run_lock.h"
#include "io/checkpoint/save_target.h"
#include "io/checkpoint/shard_file.h"
#include "io/checkpoint/staging.h"
#include "io/checkpoint/store.h"
#include "io/checkpoint/workers.h"
#include "mpi/communicator.h"

namespace trireme {

struct DiskOptions {
  std::filesystem::path folder;  // shared by all ranks; created if missing
  bool force = false;  // take the lock even from an owner that may be alive on another host
  Retention retention = {};
  ShardIo io = {};
  int copy_threads = 0;  // threads that copy a snapshot; 0 means all processors of this process
  std::string software = "trireme";
  MakeProvenance provenance = {};  // used on rank 0, in the background; may be empty
  LockTimes lock = {};
  // Called on rank 0, in the background, for each old step that retention has deleted; may be
  // empty.
  std::function<void(const StepFolder&)> deleted = {};
};

class DiskTarget final : public SaveTarget {
 public:
  // Collective. Takes the folder's run lock and cleans up after earlier runs. All ranks throw the
  // same error if that fails: PolicyError if another run holds the lock, IoError if the folder
  // can't be written.
  DiskTarget(Communicator& comm, DiskOptions options);

  // Allocates and touches the memory for a snapshot of such blocks, so that the first save need
  // not.
  void reserve(std::span<const TensorBlock> blocks);
  // Returns the size of that memory.
  std::int64_t snapshot_bytes() const { return image_.bytes(); }
  // Returns the generation of this run, the same on all ranks.
  std::int64_t generation() const { return generation_; }
  // Adds steps whose contents were found damaged, which do not count towards retention.keep. Call
  // it before the first save.
  void distrust(const std::vector<StepIdentity>& damaged);
  // Returns a warning about damage in the folder, for the user, or "". Only rank 0 has one.
  std::string warning() const { return lock_ == nullptr ? "" : lock_->warning(); }
  // Stops the deletion of old steps, of which some may remain, and gives the folder's lock back.
  // Waits at most `limit` for each of them, and returns whether both have ended. If not, the target
  // must not be destroyed, but it starts no further commit. Call it after the writer's
  // quiet_within(), before destruction. Not collective.
  bool quiet_within(std::chrono::duration<double> limit);

  void begin(std::int64_t step, std::shared_ptr<const FolderKey> key) override;
  Snapshot take(std::span<const TensorBlock> blocks, std::function<void()> ready) override;
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
  void note_deleted(const std::filesystem::path& path, const std::vector<StepFolder>& steps) const;

  DiskOptions options_;
  int rank_;
  std::unique_ptr<RunLock> lock_;  // on rank 0 only
  std::int64_t generation_ = 0;
  std::int64_t step_ = 0;
  std::shared_ptr<const FolderKey> key_;  // of the latest save; null if it is not encrypted
  PageBuffer image_;                      // holds the latest snapshot
  std::mutex names_;                      // held by whoever renames a step's folder
  std::atomic<bool> ending_ = false;
  bool retention_is_due_ = false;  // a save ended while old steps were still being deleted
  BackgroundJob retention_;        // declared last, so that it ends before the members it uses
};

}  // namespace trireme
