// MemoryTarget keeps the newest steps in the memory of the nodes, where they outlive the ranks.
// Each rank copies its blocks into a file in its node's memory and computes the digests there; the
// leader of each node writes the manifest and renames the step's folder.
//
// At most kMemorySlots copies of a rank's blocks are in memory: two whole steps and the one being
// saved. A step is overwritten only when a newer one is whole on every node and, if partners copy
// steps, was copied (holding.h). Files are not synced, since memory does not survive its node
// anyway. The training loop owns the target; the communicator must outlive it. All ranks make the
// calls marked collective in the same order, from the thread that owns the communicator.
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
#include "io/checkpoint/staging.h"
#include "io/checkpoint/workers.h"

namespace trireme {

struct MemoryOptions {
  NodeMemory node;
  bool partner = true;          // whether to ask the agents for partner copies
  std::int64_t generation = 0;  // generation of this run, from its checkpoint folder
  std::string run;              // identifies the run: its checkpoint folder
  int copy_threads = 0;  // threads that copy a snapshot; 0 means all processors of this process
  std::string software = "trireme";
  bool encrypts = false;  // whether saves will have keys
};

class MemoryTarget final : public SaveTarget {
 public:
  MemoryTarget(Communicator& comm, const NodeMap& nodes, MemoryOptions options);
  // Not collective. Frees the memory that no whole step occupies.
  ~MemoryTarget() override;

  // Collective; call it before the first save. Removes what earlier runs left in the nodes' own
  // folders, except for the step that this run has resumed from, which remains until two newer ones
  // are whole. Returns why the memory can't be used, or "".
  std::string open(const std::optional<MemoryStepName>& resumed);
  // Allocates the memory for such blocks, so that saves need not. Returns why it could not, or "";
  // saves try again.
  std::string reserve(std::span<const TensorBlock> blocks);
  // Returns how much of the node's memory this rank has allocated.
  std::int64_t bytes() const;
  // Returns how much memory of its own this rank has allocated besides, for encryption.
  std::int64_t plain_bytes() const { return plain_.bytes(); }

  // Returns the snapshot of the latest save, or nothing if this rank could not take it. It does not
  // change until the next save, or as long as it is pinned.
  const std::optional<Snapshot>& snapshot() const { return snapshot_; }
  // Marks the latest snapshot as still being read, until unpin(). All ranks call both alike.
  void pin_latest();
  void unpin();

  void begin(std::int64_t step, std::shared_ptr<const FolderKey> key) override;
  Snapshot take(std::span<const TensorBlock> blocks, std::function<void()> ready) override;
  std::optional<StoredShard> write(const Snapshot& snapshot) override;
  void before_gather() override;
  bool commits() const override { return leads_; }
  std::string commit(Manifest manifest) override;
  std::string settle(bool durable) override;
  std::filesystem::path attempt_folder() const override { return own_.attempt(name_); }

 private:
  std::filesystem::path folder_of(const HeldStep& step) const;
  void learn_copies();
  void reserve_plain(std::int64_t bytes);
  std::optional<std::size_t> take_slot();
  std::string want_copy() const;
  void let_resumed_go();

  Communicator& comm_;
  MemoryOptions options_;
  bool leads_;
  OwnFolder own_;
  std::array<MemorySlot, kMemorySlots> slots_;
  // Sorted from the oldest; the latest save is the last one. The same on all ranks. A step that an
  // earlier run left has no file in its slot.
  std::vector<HeldStep> held_;
  std::int64_t slot_bytes_ = 0;  // size of a slot, set by reserve()
  // Holds what is encrypted to a slot: the node's memory is a file system, where no plain text may
  // lie. Empty if nothing is encrypted.
  PageBuffer plain_;
  std::shared_ptr<const FolderKey> key_;  // of the latest save; null if it is not encrypted
  MemoryStepName name_;                   // name of the latest save
  std::optional<std::size_t> slot_;       // slot of the latest save, if it has one
  std::optional<Snapshot> snapshot_;      // snapshot of the latest save, if this rank could take it
  bool is_committing_ = false;            // the latest save has reached commit() on this rank
  BackgroundJob tidying_;  // declared last, so that it ends before the members it uses
};

}  // namespace trireme
