// Byte runs map the elements of a block in memory to their bytes in a shard file. A save copies
// along them from memory to file, a load from file to memory.
#pragma once

#include <vector>

#include "io/checkpoint/types.h"

namespace trireme {

// A ByteRun is a range of bytes that is contiguous both in memory and in a shard file.
struct ByteRun {
  std::byte* memory;
  std::int64_t offset;  // bytes from the start of the file
  std::int64_t bytes;
};

// Appends the runs of the block's elements [first, first + elements), which are stored in the file
// from `offset` (bytes) on. A run that continues the last one both in memory and in the file
// extends it, so that flat buffers of parameters become a few long runs.
void add_byte_runs(const TensorBlock& block, std::int64_t first, std::int64_t elements,
                   std::int64_t offset, std::vector<ByteRun>& runs);

}  // namespace trireme
