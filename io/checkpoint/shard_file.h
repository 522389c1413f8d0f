// Writes and reads shard files on disk. A shard is written once from an image in memory, and read
// in whole digest blocks, which are compared with the manifest's digests before any of their bytes
// is used. O_DIRECT is used where the file system supports it: on a fast disk it is several times
// faster than the page cache, and it reads what the disk holds rather than what is cached.
#pragma once

#include <filesystem>
#include <functional>

#include "io/checkpoint/manifest.h"
#include "io/checkpoint/names.h"
#include "io/checkpoint/snapshot.h"
#include "io/checkpoint/types.h"
#include "src/base/file.h"

namespace trireme {

struct ShardIo {
  bool direct = true;
  // If set, a shard counts as written only after it was read back from disk and its digests match.
  bool read_back = true;
  int threads = 4;      // threads that read; they mostly wait for the disk
  bool sha256 = false;  // also compute the SHA-256 of a shard that is written
};

// Encrypts the image of a complete snapshot, if it is to be encrypted, and returns a shard with
// this name and contents, its digests and tags.
StoredShard describe_shard(std::string file, const Snapshot& snapshot);

// Does the same, writes the image to a new file and syncs it. Throws at the first failure; the file
// is then useless.
StoredShard write_shard(const std::filesystem::path& path, const Snapshot& snapshot,
                        const ShardIo& io);

// Reads an open shard. Several threads may read from it at once. `shard` must outlive it.
class ShardReader {
 public:
  ShardReader(const std::filesystem::path& folder, const StoredShard& shard, bool direct);

  // Reads the digest blocks [first, last) and checks them, except for those of an encrypted shard,
  // which are checked when they are opened (sealed_shard.h). Throws DataError that names file and
  // block. to: [(last - first) * kDigestBlockBytes], page-aligned.
  void read_blocks(std::int64_t first, std::int64_t last, std::byte* to) const;
  // Same, without the check.
  void read_unchecked(std::int64_t first, std::int64_t last, std::byte* to) const;
  // Returns what is wrong with a block that was read to `at`, or "" if its digest matches.
  std::string block_fault(std::int64_t block, const std::byte* at) const;
  std::int64_t block_bytes(std::int64_t block) const;
  const StoredShard& shard() const { return shard_; }
  const File& file() const { return plain_; }

 private:
  const StoredShard& shard_;
  File plain_;
  File direct_;
  bool has_direct_;
};

// Returns what is wrong with a block that has its digest, or "". Called on several threads.
using BlockCheck = std::function<std::string(std::int64_t block, const std::byte* at)>;

// Reads every byte of the shard. Returns one line for each damaged block, or for a file that can't
// be read. `also` may be empty. Throws PolicyError if this user may not read it, and ResourceError
// for lack of memory.
std::vector<std::string> verify_shard(const std::filesystem::path& folder, const StoredShard& shard,
                                      const ShardIo& io, const BlockCheck& also = {});

}  // namespace trireme
