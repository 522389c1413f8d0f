// The encryption of a dataset's shards (src/keys/block_cipher.h). Each digest block is encrypted in
// place; its tag is in the manifest. The key of a file comes from the data key, the shard's path
// and a salt, which is drawn anew whenever a shard is written: an interrupted pack may write other
// contents under the same path, and no key may encrypt both.
//
//   key of the shard           DataKey::file_key(PATH + " " + SALT)
//   key of the plain digest    DataKey::file_key(PATH + " " + SALT + " digest")
//
// Private to io/data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "io/data/dataset_manifest.h"
#include "src/base/file.h"

namespace trireme {

inline constexpr std::size_t kSaltBytes = 16;
inline constexpr std::size_t kSealedDigestBytes = 8 + kTagBytes;

// Returns the cipher of a shard's blocks. For one thread.
BlockCipher shard_cipher(const DataKey& key, const ShardEntry& entry);

// Decrypts block `number` of the shard. sealed, plain: [bytes of the block], which do not overlap.
// Throws DataError that names `path` and the block if it was not encrypted with this key for this
// place, and says whether it does not even have its digest.
void open_shard_block(BlockCipher& cipher, const ShardEntry& entry,
                      const std::filesystem::path& path, std::int64_t number,
                      const std::byte* sealed, std::byte* plain);

// Returns the digest of the plain file. Throws DataError unless it was encrypted with this key for
// this shard.
std::uint64_t open_plain_digest(const DataKey& key, const ShardEntry& entry);

// Reads `bytes` bytes of the plain file at `offset` into `to`.
using PlainRead = std::function<void(std::int64_t offset, std::int64_t bytes, std::byte* to)>;

// Encrypts a plain file of entry.bytes bytes into `file`, and syncs it. Each block is read before
// it is written, so that both may be the same file. entry: has its path; gets a salt, digests and
// tags. `done`, which may be empty, is called with the bytes of each block that was written.
void seal_shard(File& file, const DataKey& key, const PlainRead& read, ShardEntry& entry,
                const std::function<void(std::int64_t)>& done);

}  // namespace trireme
