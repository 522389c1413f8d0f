// MemoryTarget: keeps the newest steps in the memory of the nodes, where they outlive the ranks.
// Each rank copies its blocks into a file of its node's memory and takes the digests there; the
// leader of each node writes the manifest and renames the step's folder.
//
// The memory is bounded by kMemorySlots copies of a rank's blocks: two whole steps and the one
// under way, or less where steps are few. A step is overwritten only when a newer one is whole on
// every node and, as far as partners copy, copied (holding.h). No sync: memory does not survive its
// node anyway. Owned by the training loop; calls marked collective are made by all ranks in the
// same order, from the thread that owns the communicator, which outlives the target.
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
#include "io/checkpoint/save_target.h"
#include "io/checkpoint/workers.h"

namespace trireme {

struct MemoryOptions {
  NodeMemory node;
  bool partner = true;          // ask the agents for copies
  std::int64_t generation = 0;  // of the run, from its checkpoint folder
  std::string run;              // what tells the run from others: its checkpoint folder
  int copy_threads = 0;         // 0: all processors that this process may use
  std::string software = "trireme";
};

class MemoryTarget final : public SaveTarget {
 public:
  MemoryTarget(Communicator& comm, const NodeMap& nodes, MemoryOptions options);
  // Not collective. Gives back the memory that no whole step needs.
  ~MemoryTarget() override;

  // Collective, before the first save. Removes what earlier runs left in the nodes' own folders,
  // but for the step that this one has resumed from, which stays until two newer ones are whole.
  // "" or what keeps the memory from being used.
  std::string open(const std::optional<MemoryStepName>& resumed);
  // Takes the memory for such blocks, so that saves need not. "" or what this rank lacks; a save
  // tries again.
  std::string reserve(std::span<const TensorBlock> blocks);
  // What this rank has taken of the node's memory.
  std::int64_t bytes() const;

  // Of the latest save, if this rank could take it; it stays as it is until the next save, or
  // while it is pinned.
  const std::optional<Snapshot>& snapshot() const { return snapshot_; }
  // What the latest save has taken is still being read, until unpin(). The same on all ranks.
  void pin_latest();
  void unpin();

  void begin(std::int64_t step) override;
  Snapshot take(std::span<const TensorBlock> blocks) override;
  std::optional<StoredShard> write(const Snapshot& snapshot) override;
  void before_gather() override;
  bool commits() const override { return leads_; }
  std::string commit(Manifest manifest) override;
  std::string settle(bool durable) override;
  std::filesystem::path attempt_folder() const override { return own_.attempt(name_); }

 private:
  std::filesystem::path folder_of(const HeldStep& step) const;
  void learn_copies();
  std::optional<std::size_t> take_slot();
  std::string want_copy() const;
  void let_resumed_go();

  Communicator& comm_;
  MemoryOptions options_;
  bool leads_;
  OwnFolder own_;
  std::array<MemorySlot, kMemorySlots> slots_;
  // Oldest first, the latest save's last; the same on all ranks. One that an earlier run left has
  // no file in its slot.
  std::vector<HeldStep> held_;
  std::int64_t slot_bytes_ = 0;       // of reserve()
  MemoryStepName name_;               // of the latest save
  std::optional<std::size_t> slot_;   // its slot, if it has one
  std::optional<Snapshot> snapshot_;  // its copy, if this rank could take it
  bool is_committing_ = false;        // it has come that far on this rank
  BackgroundJob tidying_;             // last: ends before what it uses
};

}  // namespace trireme
