// Reads encrypted shards. Their digests in the manifest are those of the encrypted bytes, so that
// whoever has no key can verify, copy and repair them; the tags prove to those who have the key
// that the bytes were written with it, for this file and place.
#pragma once

#include <string>

#include "io/checkpoint/manifest.h"
#include "src/base/file.h"
#include "src/keys/block_cipher.h"

namespace trireme {

// Decrypts the blocks of one shard. For one thread. The manifest must outlive it.
class SealedShard {
 public:
  // Preconditions: the shard has tags, and the manifest a key.
  SealedShard(const Manifest& manifest, std::int64_t shard);

  // Decrypts a digest block. sealed, plain: [bytes of the block], which do not overlap. Throws
  // DataError that names file and block if it was not written with the key at this place, and says
  // whether it does not even have its digest.
  void open_block(std::int64_t block, const std::byte* sealed, std::byte* plain);

 private:
  const StoredShard& shard_;
  BlockCipher cipher_;
};

// Returns whether the shard is encrypted. Throws PolicyError if it is and the manifest has no key.
bool is_sealed(const Manifest& manifest, std::int64_t shard);

// Returns the first `bytes` bytes of a shard, decrypted if it is encrypted. Throws DataError if the
// file is too short or a block does not open.
std::string read_start(const File& file, const Manifest& manifest, std::int64_t shard,
                       std::int64_t bytes);

}  // namespace trireme
