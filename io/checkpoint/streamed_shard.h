// Writes a shard file whose tensors are made while it is written, a piece at a time, so that the
// memory needed does not depend on its size. For commands that make checkpoints from other files; a
// run writes a snapshot instead (shard_file.h). Several threads make and write pieces.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "io/checkpoint/manifest.h"
#include "io/checkpoint/shard_file.h"

namespace trireme {

struct StreamedTensor {
  std::string name;
  Shape shape;
};

// Sets `to` to the row-major elements [first, first + count) of a tensor. Called on several
// threads.
using MakeElements =
    std::function<void(const std::string& name, std::int64_t first, std::int64_t count, float* to)>;

// Writes shard `number` of a step to `folder`, with whole f32 tensors in the given order, encrypted
// with `key` unless it is null. Syncs the file, and reads it back if `io` says so. Throws at the
// first failure; the file is then useless.
ShardTable write_streamed_shard(const std::filesystem::path& folder, std::int64_t number,
                                std::span<const StreamedTensor> tensors, const MakeElements& make,
                                const DataKey* key, const ShardIo& io);

}  // namespace trireme
