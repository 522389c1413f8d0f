// CheckpointWriter runs saves to one target, in the background while training continues.
//
//   save():      take the snapshot (one parallel copy), then return; from a device, the copy ends
//                in the background
//   background:  each rank writes its shard, or computes the digests of a shard in memory
//   poll():      all ranks agree that all shards are written, and gather their tables
//   background:  the ranks that commit write the manifest and rename the step's folder
//   poll():      all ranks agree that the step is durable; older ones may be deleted
//
// save_target.h says what these steps do on disk and in memory. One save is in flight at a time: a
// save that finds an unfinished one waits for it, which stats() counts. A failed save is cleaned up
// and reported, older checkpoints remain, and training continues. The training loop owns the
// writer. All ranks make the calls marked collective in the same order, from the thread that owns
// the communicator; background threads do not use MPI. Communicator and target must outlive the
// writer.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>

#include "io/checkpoint/save_target.h"
#include "io/checkpoint/workers.h"
#include "mpi/communicator.h"

namespace trireme {

// Describes the result of one save, the same on all ranks.
struct SaveOutcome {
  std::int64_t step = 0;
  bool durable = false;
  // True if the save failed because another run has taken over the target; this run must exit.
  bool fenced = false;
  // Says why the save failed, with rank and host, or warns about a durable one. Usually empty.
  std::string message;
  std::int64_t bytes = 0;  // sum over all shards
  double seconds = 0;      // from save() until the outcome was known
};

struct WriterStats {
  std::int64_t saves = 0;
  std::int64_t durable = 0;
  std::int64_t failed = 0;
  std::int64_t waits = 0;         // saves that had to wait for the previous one
  double wait_seconds = 0;        // time spent in such waits
  double stall_seconds = 0;       // time the training loop spent in save(), waits included
  double last_stall_seconds = 0;  // the same, for the latest save()
  double last_write_seconds = 0;  // background time that writing this rank's latest shard took
};

class CheckpointWriter {
 public:
  using Seconds = std::chrono::duration<double>;

  // `patience` is how long finish() and save() wait for a write. It must be shorter than the
  // deadline with which other ranks wait for this one.
  CheckpointWriter(Communicator& comm, SaveTarget& target, Seconds patience = Seconds(1e9));
  // Not collective. Leaves an unfinished save behind as an attempt, which is never read.
  ~CheckpointWriter() { job_.wait(); }
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Collective. Copies the blocks, which may change as soon as it returns. If it waited for the
  // previous save, returns the outcome of that. With `ready` (SnapshotFill), the background thread
  // copies the blocks instead, which may change after complete_snapshot().
  // The shards are encrypted with `key`, if given: a new key for each step, the same on all ranks.
  std::optional<SaveOutcome> save(const CheckpointMeta& meta, std::span<const TensorBlock> blocks,
                                  std::function<void()> ready = nullptr,
                                  std::shared_ptr<const FolderKey> key = nullptr);
  // Same, with a snapshot that the caller has taken and does not change while in_flight(). Some
  // ranks may call this and others the overload above. `key` is that of the snapshot.
  std::optional<SaveOutcome> save(const CheckpointMeta& meta, Snapshot snapshot,
                                  std::shared_ptr<const FolderKey> key = nullptr);
  // Waits until the blocks of the latest save have been copied. Not collective.
  void complete_snapshot() const {
    if (filled_.valid()) {
      filled_.wait();
    }
  }
  // Collective and cheap; call it at step boundaries. Returns the outcome of a save that has just
  // ended.
  std::optional<SaveOutcome> poll();
  // Collective. Waits until nothing is in flight. finish() and save() throw Hang if a write does
  // not end within the patience; then quiet_within() says whether the writer may be destroyed.
  std::optional<SaveOutcome> finish();
  // Waits for at most `limit`. Returns whether no background work is left. Not collective.
  bool quiet_within(Seconds limit) { return job_.wait_for(limit); }
  bool in_flight() const { return phase_ != Phase::idle; }
  const WriterStats& stats() const { return stats_; }

 private:
  enum class Phase { idle, writing, committing };

  std::optional<SaveOutcome> begin_save(const CheckpointMeta& meta,
                                        std::shared_ptr<const FolderKey> key);
  void end_stall();
  void start_writing(Snapshot snapshot);
  void start_committing();
  Manifest joined(const std::vector<std::string>& tables) const;
  SaveOutcome end_save(bool durable);

  Communicator& comm_;
  SaveTarget& target_;
  Seconds patience_;
  Phase phase_ = Phase::idle;
  CheckpointMeta meta_;
  std::string data_key_;             // identity of the key of the latest save, or ""
  std::shared_future<void> filled_;  // of the latest snapshot
  // While the job runs, only it uses the next five.
  Snapshot snapshot_;
  ShardTable table_;
  std::string warning_;
  double write_seconds_ = 0;
  std::int64_t saved_bytes_ = 0;
  double save_start_ = 0;
  WriterStats stats_;
  BackgroundJob job_;  // declared last, so that it ends before the members it uses
};

}  // namespace trireme
