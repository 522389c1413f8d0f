// CheckpointWriter: saves while training goes on.
//
//   save():  snapshot (one parallel copy into staging), then the loop goes on
//   behind:  each rank writes, digests, syncs and reads back its shard         (shard_file.h)
//   poll():  all ranks agree that all shards are there; rank 0 gathers their tables
//   behind:  rank 0 writes the manifest and renames                            (commit.h)
//   poll():  all ranks agree that the checkpoint is durable; rank 0 lets old ones go
//
// One snapshot is in flight at a time: the memory is bounded by one copy of the rank's blocks. A
// save that finds the one before unfinished waits for it; stats() counts that. An attempt that
// fails is cleaned up and reported, the older checkpoints stay, training goes on. Owned by the
// training loop. Every call that is marked collective is made by all ranks in the same order, from
// the thread that owns the communicator; background threads know no MPI. The communicator outlives
// the writer.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "io/checkpoint/run_lock.h"
#include "io/checkpoint/shard_file.h"
#include "io/checkpoint/staging.h"
#include "io/checkpoint/store.h"
#include "io/checkpoint/workers.h"
#include "mpi/communicator.h"

namespace trireme {

struct WriterOptions {
  std::filesystem::path folder;  // shared by all ranks; made if it is not there
  bool force = false;            // take the lock from an owner that may live elsewhere
  Retention retention = {};
  ShardIo io = {};
  int copy_threads = 0;  // of a snapshot; 0: all processors that this process may use
  std::string software = "trireme";
  LockTimes lock = {};
  // Of waiting for the file system: less than that of other ranks for this one.
  std::chrono::duration<double> patience{1e9};
  Observer observer = {};
};

// What became of one save, the same on all ranks.
struct SaveOutcome {
  std::int64_t step = 0;
  bool durable = false;
  bool fenced = false;  // not durable because another run has taken the folder over: end
  // Why it failed, with rank and host; or, of a durable one, a warning. Mostly empty.
  std::string message;
  std::int64_t bytes = 0;  // of all shards
  double seconds = 0;      // from save() to here
};
// Collective: of every rank's own message and bytes, those of all and the most; the rest as given.
SaveOutcome share_outcome(Communicator& comm, SaveOutcome own);

struct WriterStats {
  std::int64_t saves = 0;
  std::int64_t durable = 0;
  std::int64_t failed = 0;
  std::int64_t waits = 0;         // saves that had to wait for the one before
  double wait_seconds = 0;        // in such waits
  double stall_seconds = 0;       // of the training loop in save(), waits included
  double last_stall_seconds = 0;  // of the latest save()
  double last_write_seconds = 0;  // of this rank's shard, in the background
  void count(const SaveOutcome& outcome) { ++(outcome.durable ? durable : failed); }
};

// A rank's blocks at one moment, as the shard file they become.
struct Snapshot {
  const std::byte* image = nullptr;   // [round_up(bytes, kDataAlignment)], page-aligned
  std::int64_t bytes = 0;             // of the file; 0: this rank has no blocks
  std::vector<StoredTensor> tensors;  // where its blocks lie in it
};

// The shard file of this rank in a checkpoint.
ShardPlan plan_shard_of_rank(std::span<const TensorBlock> blocks, std::int64_t step,
                             std::int64_t generation, int rank);

class CheckpointWriter {
 public:
  // Collective. Takes the folder's run lock and cleans up after earlier runs; all ranks throw alike
  // if that fails: PolicyError for a second run, IoError for a folder that can't be written.
  CheckpointWriter(Communicator& comm, WriterOptions options);
  // Not collective: leaves an unfinished save behind as an attempt that nobody reads.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Takes and touches the memory of a snapshot of such blocks, so that the first save need not.
  void reserve(std::span<const TensorBlock> blocks);
  // Collective. Copies the blocks; they may change as soon as it returns. The outcome, if there is
  // one, is that of the save before, which it waited for.
  std::optional<SaveOutcome> save(const CheckpointMeta& meta, std::span<const TensorBlock> blocks);
  // The same of a snapshot that the caller has taken, and leaves as it is while in_flight(). Ranks
  // may differ in which of the two they call.
  std::optional<SaveOutcome> save(const CheckpointMeta& meta, Snapshot snapshot);
  // Collective, cheap: call it at step boundaries. The outcome of a save, once it has one.
  std::optional<SaveOutcome> poll();
  // Collective: waits until nothing is in flight. This and save() throw Hang if a write does not
  // end within the patience; then quiet_within() tells whether the writer may be destroyed.
  std::optional<SaveOutcome> finish();
  // Before its end. Whether no work is left in the background, after so long at most, and the
  // folder's lock is given back; of old checkpoints that are still to be deleted some may stay. One
  // that is not quiet is left to itself: it begins no commit any more. Not collective.
  bool quiet_within(std::chrono::duration<double> limit);
  bool in_flight() const { return phase_ != Phase::idle; }

  // The same on all ranks.
  std::int64_t generation() const { return generation_; }
  const WriterStats& stats() const { return stats_; }
  // Of the snapshot's memory.
  std::int64_t snapshot_bytes() const { return staging_.reserved_bytes(); }

 private:
  enum class Phase { idle, writing, committing };

  void open_folder();
  std::optional<SaveOutcome> begin_save(const CheckpointMeta& meta);
  void end_stall();
  void start_writing(Snapshot snapshot);
  void write(const std::byte* image, std::int64_t bytes);
  void start_committing();
  SaveOutcome end_save(bool durable);
  std::filesystem::path attempt_folder() const;
  void remove_attempt(std::string& message) const;
  void start_retention(std::string& message);

  Communicator& comm_;
  WriterOptions options_;
  std::unique_ptr<RunLock> lock_;  // rank 0's
  std::int64_t generation_ = 0;
  Phase phase_ = Phase::idle;
  CheckpointMeta meta_;
  Staging staging_;
  // The next four are the job's while it runs.
  ShardTable table_;
  std::string warning_;
  double write_seconds_ = 0;
  std::int64_t saved_bytes_ = 0;
  double save_start_ = 0;
  WriterStats stats_;
  std::mutex names_;  // of steps: whoever renames one holds it
  std::atomic<bool> ending_ = false;
  BackgroundJob retention_;
  BackgroundJob job_;  // last: ends before what it uses
};

}  // namespace trireme
