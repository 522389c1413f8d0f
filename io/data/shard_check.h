// Compares the HDF5 metadata and document offsets of a shard with the manifest, for programs that
// write or verify shards. It uses libhdf5, so the step loop never calls it.
#pragma once

#include <filesystem>

#include "io/data/dataset_manifest.h"
#include "io/data/shard_writer.h"

namespace trireme {

constexpr const char* kShardFormatName = "trireme-tokens";
constexpr std::int64_t kShardVersion = 1;

// Throws DataError that names the file, the difference and both values.
void check_shard(const std::filesystem::path& path, const ShardEntry& shard,
                 const ShardFormat& format);
// Does the same without the document offsets.
void check_layout(const std::filesystem::path& path, const ShardEntry& shard,
                  const ShardFormat& format);
ShardFormat shard_format(const DatasetManifest& manifest);

}  // namespace trireme
