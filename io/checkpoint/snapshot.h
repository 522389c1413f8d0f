// A Snapshot is a copy of a rank's blocks at one moment, in the form of the shard file that they
// become. Its image is filled at once, or later by the first thread that needs it, if the blocks
// are still being copied from a device. If the shard is encrypted, its writers encrypt the image
// once it is filled. A value; the memory of the image belongs to a SaveTarget.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "io/checkpoint/image_sealer.h"
#include "io/checkpoint/shard_plan.h"

namespace trireme {

struct Snapshot {
  const std::byte* image = nullptr;          // [round_up(bytes, kDataAlignment)], page-aligned
  std::int64_t bytes = 0;                    // size of the file; 0 if this rank has no blocks
  std::vector<StoredTensor> tensors;         // say where the blocks are in the file
  std::shared_future<void> filled;           // not valid if the image was filled at once
  std::shared_ptr<ImageSealer> sealer = {};  // encrypts the filled image; null if nothing does

  // Returns when the image is filled, or throws the error that prevented it. Each thread calls it
  // on its own copy of the snapshot.
  void complete() const {
    if (filled.valid()) {
      filled.get();
    }
  }
};

// Says how the image of a snapshot is filled. If `ready` is given, the blocks hold their elements
// once it has returned, and keep them until the snapshot is complete; it is called from complete().
// Otherwise the image is filled at once. `done` is called after the copy.
struct SnapshotFill {
  int threads = 1;
  std::function<void()> ready;
  std::function<void()> done;
  const DataKey* key = nullptr;  // encrypts the shard, if given
  std::string file = {};         // the shard's name, part of the encryption
  std::byte* plain = nullptr;  // holds what will be encrypted to the image; null: the image itself
};

// image, and fill.plain if given: [round_up(plan.bytes, kDataAlignment)], which stay valid until
// the next snapshot.
Snapshot make_snapshot(ShardPlan plan, std::byte* image, SnapshotFill fill);

}  // namespace trireme
