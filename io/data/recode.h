// Encrypts a finished dataset in place, or decrypts it. The new shards are written beside the old
// ones, under other names; then the manifest is replaced, and the old shards are removed. At every
// moment, the folder holds one complete dataset: what an interruption leaves is removed when the
// command is repeated. All ranks call it together and share the shards.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "io/data/dataset_writing.h"

namespace trireme {

inline constexpr const char* kRecodeLockName =
    ".recode.lock";  // in the folder, while it is changed

struct RecodeOptions {
  std::filesystem::path folder;
  bool encrypts = true;        // else decrypts
  DatasetKeyMaker make_key;    // a new key, or the one that opens the dataset
  PackProgress progress = {};  // in bytes; may be empty
};

struct RecodeReport {
  bool was_done = false;  // the dataset was as it should be
  std::int64_t shards = 0;
  std::int64_t bytes = 0;
  std::string digest;
};

// Returns the same report on all ranks. Throws PolicyError if the dataset is signed, since its
// provenance would no longer be true, or if another process changes it; IoError if there is no
// space for a second copy; and DataError if a shard is damaged, which leaves the dataset as it was.
RecodeReport recode(const RecodeOptions& options, const RankGroup& ranks);

}  // namespace trireme
