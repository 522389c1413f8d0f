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

// What keeps the blocks from being loaded from such a checkpoint: a missing tensor, another
// shape or type, a line each.
std::vector<std::string> mismatches(const Manifest& manifest, std::span<const TensorBlock> blocks);

class CheckpointReader {
 public:
  CheckpointReader(std::filesystem::path step_folder, Manifest manifest, ShardIo io = {});

  const Manifest& manifest() const { return manifest_; }
  const std::filesystem::path& folder() const { return folder_; }

  // Fills the blocks. ConfigError with all mismatches; DataError for damage, in which case
  // they hold undefined bytes.
  LoadStats load(std::span<const TensorBlock> blocks) const;

 private:
  std::filesystem::path folder_;
  Manifest manifest_;
  ShardIo io_;
};

}  // namespace trireme
