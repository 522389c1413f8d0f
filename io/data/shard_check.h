// What a shard's HDF5 metadata and document offsets have to say, compared with the manifest. Used
// by whoever wrote a shard, and by verify. Opens libhdf5: never on the data path.
#pragma once

#include <filesystem>

#include "io/data/dataset_manifest.h"
#include "io/data/shard_writer.h"

namespace trireme {

constexpr const char* kShardFormatName = "trireme-tokens";
constexpr std::int64_t kShardVersion = 1;

// DataError names the file, what differs, and both values.
void check_shard(const std::filesystem::path& path, const ShardEntry& shard,
                 const ShardFormat& format);
ShardFormat shard_format(const DatasetManifest& manifest);

}  // namespace trireme
