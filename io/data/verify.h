// Checks a whole dataset: every byte of every file against the manifest, then what HDF5 says of it.
// Ranks share the shards; nothing crosses between them here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "io/data/dataset_manifest.h"

namespace trireme {

struct VerifyReport {
  std::int64_t shards = 0;  // looked at by this rank
  std::int64_t bytes = 0;
  std::vector<std::string> damage;  // one line each: file, block, byte range, expected, found
  std::vector<std::string>
      extras;  // files below shards/ that the manifest does not name: never read
};

// Rank `rank` of `size` looks at the shards rank, rank + size, ...; rank 0 at the folder as well.
// `progress`: bytes done with, of all that this rank reads. May be empty.
VerifyReport verify_shards(const std::filesystem::path& folder, const DatasetManifest& manifest,
                           int rank, int size,
                           const std::function<void(std::int64_t, std::int64_t)>& progress);

}  // namespace trireme
