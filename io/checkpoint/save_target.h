// SaveTarget: a place that keeps checkpoints, as CheckpointWriter uses it (writer.h): the disk
// (disk_target.h), or the memory of the nodes (memory/memory_target.h). Every rank has one. Calls
// come in the order below; those marked "background" from the writer's thread, which knows no MPI,
// the others from the thread that owns the communicator, on all ranks.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint/manifest.h"

namespace trireme {

// A rank's blocks at one moment, as the shard file they become.
struct Snapshot {
  const std::byte* image = nullptr;   // [round_up(bytes, kDataAlignment)], page-aligned
  std::int64_t bytes = 0;             // of the file; 0: this rank has no blocks
  std::vector<StoredTensor> tensors;  // where its blocks are in it
};

class SaveTarget {
 public:
  SaveTarget() = default;
  SaveTarget(const SaveTarget&) = delete;
  SaveTarget& operator=(const SaveTarget&) = delete;
  virtual ~SaveTarget() = default;

  // Collective. A save of this step starts.
  virtual void begin(std::int64_t step) = 0;
  // Copies the blocks; the copy stays as it is until the next save. Not called if the caller of the
  // writer has a snapshot already. An Error fails the save.
  virtual Snapshot take(std::span<const TensorBlock> blocks) = 0;
  // Background. Makes the snapshot this rank's shard of the step; nothing if it has no blocks. An
  // exception fails the save, also in commit().
  virtual std::optional<StoredShard> write(const Snapshot& snapshot) = 0;
  // All ranks have written; the writer gathers what they wrote.
  virtual void before_gather() = 0;
  // Whether this rank takes part in the commit.
  virtual bool commits() const = 0;
  // Background, on those ranks. Completes the manifest and gives the step its name. Returns a
  // warning, or "".
  virtual std::string commit(Manifest manifest) = 0;
  // All ranks have agreed whether the step is durable: removes what a failed save has left, lets
  // older steps go. Returns a warning, or "".
  virtual std::string settle(bool durable) = 0;

  // Whether another run has taken this place over, so that nothing can be saved any more.
  virtual bool lost() const { return false; }
  // The step that is being saved, for messages.
  virtual std::filesystem::path attempt_folder() const = 0;
};

}  // namespace trireme
