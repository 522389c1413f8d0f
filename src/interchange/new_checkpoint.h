// Writes the checkpoints that commands make from other files: the folder of one step, with weights
// in fp32, without optimizer state. Every call is collective, or of rank 0.
#pragma once

#include <filesystem>
#include <vector>

#include "io/checkpoint/shard_file.h"
#include "io/checkpoint/streamed_shard.h"
#include "mpi/communicator.h"
#include "src/keys/folder_key.h"
#include "src/nn/model_tensors.h"

namespace trireme {

inline constexpr std::int64_t kNewShardBytes = std::int64_t{1} << 30;

struct NewShards {
  const std::vector<ModelTensor>& tensors;  // of the whole checkpoint, sorted by name
  // Called with io.threads threads; with one, a piece after the other, in the tensors' order.
  const MakeElements& make;
  std::int64_t shard_bytes = kNewShardBytes;  // weights in one shard, if they are several
  const DataKey* key = nullptr;               // null if the checkpoint is not encrypted
  ShardIo io = {};
};

// Collective: the ranks divide the shards. Their bytes do not depend on the number of ranks.
// Returns their tables on all ranks, in the order of the shards.
std::vector<ShardTable> write_new_shards(const NewShards& shards,
                                         const std::filesystem::path& folder, Communicator& world);

// Writes the manifest and the wrapped key, on rank 0. Returns the number of bytes of all shards.
// key: null if the checkpoint is not encrypted.
std::int64_t write_new_manifest(const std::filesystem::path& folder, std::vector<ShardTable> tables,
                                const CheckpointMeta& meta, const FolderKey* key, bool read_back);

}  // namespace trireme
