// Plans the layout of a shard file, which is a plain safetensors file with one rank's blocks. Pure
// functions.
//
//   0              8                      data_offset, a multiple of 4096        bytes
//   | header length | JSON header, spaces | block 0 | block 1 | ...              |
//   |<- digest block 0: 1 MiB ->|<- digest block 1 ->| ...
//
// Wider element types come first, so that every block is aligned to its elements; otherwise blocks
// keep the caller's order. A block that is its whole tensor has the tensor's name and shape. Any
// other block has its position in its name: `wte.weight[0:10,0:768]` for a box (first:end per
// axis), or `wte.weight[flat 0:7680]`.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint/byte_runs.h"
#include "io/checkpoint/manifest.h"

namespace trireme {

// The field of the header's metadata that only shards of checkpoints have: the number of the shard.
inline constexpr const char* kShardField = "trireme_shard";

struct ShardPlan {
  std::string head;                   // the 8 bytes of the header length, and the header
  std::vector<ByteRun> runs;          // runs of all blocks, in file order, without gaps
  std::vector<StoredTensor> tensors;  // sorted by name; their shard is 0
  std::int64_t bytes = 0;             // size of the whole file
};

// `metadata` goes into the header, together with "format": "pt".
ShardPlan plan_shard(std::span<const TensorBlock> blocks,
                     std::map<std::string, std::string> metadata);

// Plans the shard file of one rank in a checkpoint.
ShardPlan plan_shard_of_rank(std::span<const TensorBlock> blocks, std::int64_t step,
                             std::int64_t generation, int rank);

// Returns the name of a block within its shard file.
std::string block_name(const std::string& tensor, const Extent& extent, const Shape& shape);

}  // namespace trireme
