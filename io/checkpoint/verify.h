// Verifying a checkpoint to the last byte.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/checkpoint/manifest.h"
#include "io/checkpoint/shard_file.h"

namespace trireme {

// One line for each fault, with file and block; empty if every byte of every shard has its digest
// and the shards' own headers tell the same as the manifest.
std::vector<std::string> verify_step(const std::filesystem::path& step_folder,
                                     const Manifest& manifest, const ShardIo& io = {});

}  // namespace trireme
