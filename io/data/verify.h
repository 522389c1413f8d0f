// Verifies a whole dataset: first every byte of every file against the manifest, then the HDF5
// metadata. If the dataset is encrypted, the second part needs its key, and every block must open.
// The ranks divide the shards among themselves and do not communicate here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "io/data/dataset_manifest.h"

namespace trireme {

struct VerifyReport {
  std::int64_t shards = 0;  // shards that this rank has checked
  std::int64_t bytes = 0;
  // One line each: file, block, byte range, expected and found digest.
  std::vector<std::string> damage;
  // Files that do not belong to the dataset, so that they are never read. The tokenizer's files do,
  // but are not checked here.
  std::vector<std::string> extras;
};

// Rank `rank` of `size` checks the shards rank, rank + size, ...; rank 0 also checks the folder.
// `progress` is called with the bytes that this rank has checked and their total; it may be empty.
VerifyReport verify_shards(const std::filesystem::path& folder, const DatasetManifest& manifest,
                           int rank, int size,
                           const std::function<void(std::int64_t, std::int64_t)>& progress);

}  // namespace trireme
