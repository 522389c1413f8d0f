// CheckpointWriter: a save in two phases, to one target, while training goes on.
//
//   save():  snapshot (one parallel copy), then the loop goes on
//   behind:  each rank writes its shard, or takes the digests of what is in memory already
//   poll():  all ranks agree that all shards are there, and gather their tables
//   behind:  the ranks that commit write the manifest and rename the step's folder
//   poll():  all ranks agree that the step is durable; older ones may go
//
// What the steps mean on disk and in memory: save_target.h. One snapshot is in flight at a time: a
// save that finds the one before unfinished waits for it; stats() counts that. A save that fails is
// cleaned up and reported, the older checkpoints stay, training goes on. Owned by the training
// loop. Every call that is marked collective is made by all ranks in the same order, from the
// thread that owns the communicator; background threads know no MPI. Communicator and target
// outlive the writer.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>

#include "io/checkpoint/save_target.h"
#include "io/checkpoint/workers.h"
#include "mpi/communicator.h"

namespace trireme {

// What became of one save, the same on all ranks.
struct SaveOutcome {
  std::int64_t step = 0;
  bool durable = false;
  bool fenced = false;  // not durable because another run has taken the target over: end
  // Why it failed, with rank and host; or, of a durable one, a warning. Mostly empty.
  std::string message;
  std::int64_t bytes = 0;  // of all shards
  double seconds = 0;      // from save() to here
};

struct WriterStats {
  std::int64_t saves = 0;
  std::int64_t durable = 0;
  std::int64_t failed = 0;
  std::int64_t waits = 0;         // saves that had to wait for the one before
  double wait_seconds = 0;        // in such waits
  double stall_seconds = 0;       // of the training loop in save(), waits included
  double last_stall_seconds = 0;  // of the latest save()
  double last_write_seconds = 0;  // of this rank's shard, in the background
};

class CheckpointWriter {
 public:
  using Seconds = std::chrono::duration<double>;

  // `patience`: how long finish() and save() wait for a write. Less than that of other ranks for
  // this one.
  CheckpointWriter(Communicator& comm, SaveTarget& target, Seconds patience = Seconds(1e9));
  // Not collective: leaves an unfinished save behind as an attempt that nobody reads.
  ~CheckpointWriter() { job_.wait(); }
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

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
  // Whether no work is left in the background, after so long at most. Not collective.
  bool quiet_within(Seconds limit) { return job_.wait_for(limit); }
  bool in_flight() const { return phase_ != Phase::idle; }
  const WriterStats& stats() const { return stats_; }

 private:
  enum class Phase { idle, writing, committing };

  std::optional<SaveOutcome> begin_save(const CheckpointMeta& meta);
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
  // The next five are the job's while it runs.
  Snapshot snapshot_;
  ShardTable table_;
  std::string warning_;
  double write_seconds_ = 0;
  std::int64_t saved_bytes_ = 0;
  double save_start_ = 0;
  WriterStats stats_;
  BackgroundJob job_;  // last: ends before what it uses
};

}  // namespace trireme
