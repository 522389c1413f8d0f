// CheckpointReader: blocks of logical tensors out of one checkpoint, whatever the cut it was saved
// with. Only the digest blocks that hold wanted bytes are read, each once, on several threads; a
// block is compared with its digest before a byte of it is handed out. Owned by who loads; one
// thread.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint/manifest.h"
#include "io/checkpoint/shard_file.h"

namespace trireme {

struct LoadStats {
  std::int64_t wanted_bytes = 0;
  std::int64_t read_bytes = 0;      // from files, by this rank
  std::int64_t received_bytes = 0;  // from files, by other ranks of its host
  double seconds = 0;
};

// What keeps the requests from being served out of such a checkpoint: a missing tensor, another
// shape or type, a line each.
std::vector<std::string> mismatches(const Manifest& manifest,
                                    std::span<const BlockRequest> requests);

class CheckpointReader {
 public:
  CheckpointReader(std::filesystem::path step_folder, Manifest manifest, ShardIo io = {});

  const Manifest& manifest() const { return manifest_; }
  const std::filesystem::path& folder() const { return folder_; }

  // Fills the requests' views. ConfigError with all mismatches; DataError for damage, in which case
  // the views hold undefined bytes.
  LoadStats load(std::span<const BlockRequest> requests) const;

 private:
  std::filesystem::path folder_;
  Manifest manifest_;
  ShardIo io_;
};

}  // namespace trireme
