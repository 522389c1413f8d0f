// Verifies every byte of a checkpoint.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/checkpoint/manifest.h"
#include "io/checkpoint/shard_file.h"

namespace trireme {

// Returns one line for each fault, with file and block. Returns none if every byte of every shard
// matches its digest, and the headers of the shards agree with the manifest. If the checkpoint is
// encrypted and the manifest has its key, every block must also open; without the key, only digests
// are compared. Throws PolicyError if this user may not read a shard.
std::vector<std::string> verify_step(const std::filesystem::path& step_folder,
                                     const Manifest& manifest, const ShardIo& io = {});

}  // namespace trireme
