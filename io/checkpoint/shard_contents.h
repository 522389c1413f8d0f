// Compares the header of a shard file with what the manifest says about the shard. The digests of
// the manifest protect bytes; this protects their meaning: a manifest that was changed and sealed
// again may name blocks that lie elsewhere.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "io/checkpoint/manifest.h"
#include "io/checkpoint/safetensors.h"
#include "src/base/file.h"

namespace trireme {

// Knows which blocks of a manifest lie in which shard. The manifest must outlive it.
class ShardContents {
 public:
  explicit ShardContents(const Manifest& manifest);

  // Returns one line for each disagreement between the header of `file`, which is shard number
  // `shard`, and the manifest, or for a header that can't be parsed. Throws IoError if the header
  // can't be read, and PolicyError if the shard is encrypted and the manifest has no key.
  std::vector<std::string> header_faults(const File& file, std::int64_t shard) const;

 private:
  struct Part {
    const StoredTensor* tensor;
    const StoredBlock* block;
  };
  using Entries = std::map<std::string, SafetensorsEntry>;
  // Returns what the header of the shard must list, but with offsets from the start of the file.
  Entries expected(std::int64_t shard) const;

  const Manifest& manifest_;
  std::vector<std::vector<Part>> parts_;  // by shard
};

}  // namespace trireme
