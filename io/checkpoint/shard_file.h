// Shard files on disk: written once from an image in memory, read in whole digest blocks, every
// byte of which is compared with the manifest's digest before anybody sees it. O_DIRECT where the
// file system takes it: on a fast disk it is several times faster than the page cache, and it reads
// what the disk holds rather than what memory remembers.
#pragma once

#include <filesystem>

#include "io/checkpoint/manifest.h"
#include "io/checkpoint/names.h"
#include "io/checkpoint/types.h"
#include "src/base/file.h"

namespace trireme {

struct ShardIo {
  bool direct = true;
  // Compare what was written with what the disk gives back, before it counts as written.
  bool read_back = true;
  int threads = 4;  // for reading: they mostly wait for the disk
};

// A shard of that name and contents, with its digests.
StoredShard describe_shard(std::string file, const std::byte* image, std::int64_t bytes);

// Writes the image to a new file and syncs it. `image` has round_up(bytes, kDataAlignment) bytes,
// page-aligned. Throws on the first thing that goes wrong; the file is then worthless.
StoredShard write_shard(const std::filesystem::path& path, const std::byte* image,
                        std::int64_t bytes, const ShardIo& io);

// An open shard; several threads may read from it.
class ShardReader {
 public:
  ShardReader(const std::filesystem::path& folder, const StoredShard& shard, bool direct);

  // Reads the digest blocks [first, last) and checks them; DataError names file and block.
  // `to` has (last - first) * kDigestBlockBytes bytes, page-aligned.
  void read_blocks(std::int64_t first, std::int64_t last, std::byte* to) const;
  // The same without the check.
  void read_unchecked(std::int64_t first, std::int64_t last, std::byte* to) const;
  // What is wrong with a block that has been read to `at`; empty if nothing.
  std::string block_fault(std::int64_t block, const std::byte* at) const;
  std::int64_t block_bytes(std::int64_t block) const;
  const StoredShard& shard() const { return shard_; }

 private:
  const StoredShard& shard_;
  File plain_;
  File direct_;
  bool has_direct_;
};

// Reads every byte of the shard. One line for each damaged block, or for a file that can't be read.
std::vector<std::string> verify_shard(const std::filesystem::path& folder, const StoredShard& shard,
                                      const ShardIo& io);

}  // namespace trireme
