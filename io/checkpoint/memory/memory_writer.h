// MemoryWriter: keeps the newest steps in the memory of the nodes, where they outlive the ranks.
//
//   save():  snapshot: one parallel copy into a file of the node's memory; the loop goes on
//   behind:  each rank takes the digests of its shard
//   poll():  all ranks agree that all have them, and gather their tables
//   behind:  the leader of each node writes the manifest and renames the step's folder
//   poll():  all ranks agree that the step is whole
//
// The memory is bounded by kMemorySlots copies of a rank's blocks: two whole steps and the one
// under way, or less where steps are few. A step is overwritten only when a newer one is whole on
// every node and, as far as partners copy, copied (holding.h). No sync: memory does not survive its
// node anyway. A save that fails is reported, the older steps stay, training goes on. Owned by the
// training loop; calls marked collective are made by all ranks in the same order, from the thread
// that owns the communicator, which outlives the writer.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint/memory/holding.h"
#include "io/checkpoint/memory/memory_slot.h"
#include "io/checkpoint/memory/node_map.h"
#include "io/checkpoint/memory/own_folder.h"
#include "io/checkpoint/workers.h"
#include "io/checkpoint/writer.h"

namespace trireme {

struct MemoryOptions {
  NodeMemory node;
  bool partner = true;          // ask the agents for copies
  std::int64_t generation = 0;  // of the run, from its checkpoint folder
  std::string run;              // what tells the run from others: its checkpoint folder
  int copy_threads = 0;         // 0: all processors that this process may use
  std::string software = "trireme";
  Observer observer = {};
};

// The field of a manifest's `extra` that holds MemoryOptions::run.
inline constexpr const char* kRunField = "run";

class MemoryWriter {
 public:
  MemoryWriter(Communicator& comm, const NodeMap& nodes, MemoryOptions options);
  // Not collective. Gives back the memory that no whole step needs.
  ~MemoryWriter();
  MemoryWriter(const MemoryWriter&) = delete;
  MemoryWriter& operator=(const MemoryWriter&) = delete;

  // Collective, before the first save. Removes what earlier runs left in the nodes' own folders,
  // but for the step that this one has resumed from, which stays until two newer ones are whole.
  // "" or what keeps the memory from being used.
  std::string open(const std::optional<MemoryStepName>& resumed);
  // Takes the memory for such blocks, so that saves need not. "" or what this rank lacks; a save
  // tries again.
  std::string reserve(std::span<const TensorBlock> blocks);

  // Collective. Copies the blocks; they may change as soon as it returns. Waits for the save before
  // it, whose outcome it gives.
  std::optional<SaveOutcome> save(const CheckpointMeta& meta, std::span<const TensorBlock> blocks);
  // Of the latest save, if this rank could take it; it stays as it is until the next save, or
  // while it is pinned.
  std::optional<Snapshot> snapshot() const;
  // What the latest save has taken is still being read, until unpin(). The same on all ranks.
  void pin_latest();
  void unpin();

  // Collective, cheap: call it at step boundaries.
  std::optional<SaveOutcome> poll();
  std::optional<SaveOutcome> finish();
  bool in_flight() const { return phase_ != Phase::idle; }

  const WriterStats& stats() const { return stats_; }
  // What this rank has taken of the node's memory.
  std::int64_t bytes() const;

 private:
  enum class Phase { idle, digesting, committing };

  void pass(std::string_view point) const;
  std::filesystem::path folder_of(const HeldStep& step) const;
  std::vector<std::filesystem::path> folders_in_use() const;
  void learn_copies();
  std::optional<std::size_t> take_place();
  void fill(MemorySlot& slot, const ShardPlan& plan);
  void start_committing();
  Manifest join(const std::vector<std::string>& tables);
  SaveOutcome end_save(bool whole);
  std::string settle(bool whole);
  void let_resumed_go();

  Communicator& comm_;
  MemoryOptions options_;
  bool leads_;
  OwnFolder own_;
  std::array<MemorySlot, kMemorySlots> slots_;
  // Oldest first, the latest save's last; the same on all ranks. One that an earlier run left has
  // no file in its slot.
  std::vector<HeldStep> held_;
  std::int64_t slot_bytes_ = 0;  // of reserve()
  bool has_place_ = false;       // the latest save
  Phase phase_ = Phase::idle;
  CheckpointMeta meta_;
  ShardTable table_;  // the job's while it runs
  Snapshot snapshot_;
  std::int64_t saved_bytes_ = 0;
  double save_start_ = 0;
  WriterStats stats_;
  BackgroundJob job_;  // last: ends before what it uses
};

}  // namespace trireme
