// Compares the HDF5 metadata and document offsets of a shard with the manifest, for programs that
// write or verify shards. It uses libhdf5, so the step loop never calls it.
#pragma once

#include <filesystem>

#include "io/data/dataset_manifest.h"
#include "io/data/shard_writer.h"
#include "io/h5/hang_guard.h"

namespace trireme {

inline constexpr const char* kShardFormatName = "trireme-tokens";
inline constexpr std::int64_t kShardVersion = 1;
inline constexpr const char* kLossMaskName = "loss_mask";

// Throws DataError that names the file, the difference and both values. A file in which libhdf5
// crashes or never ends ends the process with exit code 65 (CrashGuard, HangGuard). limit: CPU time
// for each operation of libhdf5.
void check_shard(const std::filesystem::path& path, const ShardEntry& shard,
                 const ShardFormat& format, std::chrono::milliseconds limit = kHangLimit);
// Does the same without the document offsets.
void check_layout(const std::filesystem::path& path, const ShardEntry& shard,
                  const ShardFormat& format, std::chrono::milliseconds limit = kHangLimit);
ShardFormat shard_format(const DatasetManifest& manifest);

}  // namespace trireme
