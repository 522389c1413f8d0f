// SaveTarget is a place that keeps checkpoints, as CheckpointWriter (writer.h) uses it: the disk
// (disk_target.h) or the memory of the nodes (memory/memory_target.h). Every rank has one. The
// writer makes the calls in the order below: those marked "background" on its own thread, which
// does not use MPI, the others on the thread that owns the communicator, on all ranks.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint/manifest.h"
#include "io/checkpoint/snapshot.h"
#include "src/keys/folder_key.h"

namespace trireme {

class SaveTarget {
 public:
  SaveTarget() = default;
  SaveTarget(const SaveTarget&) = delete;
  SaveTarget& operator=(const SaveTarget&) = delete;
  virtual ~SaveTarget() = default;

  // Collective. Called when a save of this step starts. `key` encrypts it, unless it is null.
  virtual void begin(std::int64_t step, std::shared_ptr<const FolderKey> key) = 0;
  // Copies the blocks; the copy does not change until the next save. `ready` is that of
  // SnapshotFill. Not called if the writer's caller already has a snapshot. If it throws an Error,
  // the save fails.
  virtual Snapshot take(std::span<const TensorBlock> blocks, std::function<void()> ready) = 0;
  // Background. Makes the snapshot, which is complete, this rank's shard of the step. Returns
  // nothing if the rank has no blocks. If it or commit() throws, the save fails.
  virtual std::optional<StoredShard> write(const Snapshot& snapshot) = 0;
  // Called when all ranks have written, before the writer gathers their tables.
  virtual void before_gather() = 0;
  // Returns whether this rank takes part in the commit.
  virtual bool commits() const = 0;
  // Background, on the ranks where commits() is true. Completes the manifest and gives the step its
  // name. Returns a warning, or "".
  virtual std::string commit(Manifest manifest) = 0;
  // Called when all ranks have agreed whether the step is durable. Removes what a failed save has
  // left; after a durable one, deletes older steps that are no longer needed. Returns a warning, or
  // "".
  virtual std::string settle(bool durable) = 0;

  // Returns whether another run has taken over the target, so that nothing can be saved any more.
  virtual bool lost() const { return false; }
  // Returns the folder of the step that is being saved, for messages.
  virtual std::filesystem::path attempt_folder() const = 0;
};

}  // namespace trireme
