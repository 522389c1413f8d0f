// Byte runs: how the elements of a block in memory and those in a shard file correspond. A save
// copies along them in one direction, a load in the other.
#pragma once

#include <vector>

#include "io/checkpoint/types.h"

namespace trireme {

// Bytes that lie together in memory and in a shard file.
struct ByteRun {
  std::byte* memory;
  std::int64_t offset;  // bytes from the start of the file
  std::int64_t bytes;
};

// Appends the runs of the block's elements [first, first + elements), which lie together in the
// file from `offset` on. A run that continues the last one in memory and file extends it, so that
// flat buffers of parameters become a few long runs.
void add_byte_runs(const TensorBlock& block, std::int64_t first, std::int64_t elements,
                   std::int64_t offset, std::vector<ByteRun>& runs);

}  // namespace trireme
