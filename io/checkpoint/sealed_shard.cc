#include "io/checkpoint/sealed_shard.h"

#include <algorithm>
#include <vector>

#include "io/checkpoint/names.h"
#include "src/base/digest.h"
#include "src/base/error.h"

namespace trireme {
namespace {

static_assert(kSealedBlockBytes == kDigestBlockBytes, "a digest block is encrypted as one");

const StoredShard& shard_at(const Manifest& manifest, std::int64_t shard) {
  return manifest.shards[static_cast<std::size_t>(shard)];
}

std::int64_t bytes_of_block(const StoredShard& shard, std::int64_t block) {
  return std::min(kDigestBlockBytes, shard.bytes - block * kDigestBlockBytes);
}

}  // namespace

SealedShard::SealedShard(const Manifest& manifest, std::int64_t shard)
    : shard_(shard_at(manifest, shard)), cipher_(*manifest.key, shard_.file) {}

void SealedShard::open_block(std::int64_t block, const std::byte* sealed, std::byte* plain) {
  const bool is_last = block + 1 == static_cast<std::int64_t>(shard_.tags.size());
  const auto index = static_cast<std::size_t>(block);
  const std::int64_t bytes = bytes_of_block(shard_, block);
  if (!cipher_.open({block, is_last}, sealed, bytes, shard_.tags[index], plain)) {
    if (xxh3(sealed, bytes) != shard_.block_digests[index]) {
      throw DataError(fmt::format(
          "{}: block {} (bytes {} to {}) does not have the digest in the manifest: the file is "
          "damaged",
          shard_.file, block, block * kDigestBlockBytes, block * kDigestBlockBytes + bytes - 1));
    }
    throw DataError(fmt::format(
        "{}: block {} was not written with the checkpoint's key at this place: somebody without "
        "the key changed it, or took it from another file or step",
        shard_.file, block));
  }
}

bool is_sealed(const Manifest& manifest, std::int64_t shard) {
  const bool sealed = !shard_at(manifest, shard).tags.empty();
  if (sealed && manifest.key == nullptr) {
    throw PolicyError("the checkpoint is encrypted, and no key was given: see encryption.keys");
  }
  return sealed;
}

std::string read_start(const File& file, const Manifest& manifest, std::int64_t shard,
                       std::int64_t bytes) {
  const bool is_encrypted = is_sealed(manifest, shard);
  const StoredShard& stored = shard_at(manifest, shard);
  if (bytes > stored.bytes) {
    throw DataError(fmt::format("{} ends at byte {}", file.path().string(), stored.bytes));
  }
  std::string text;
  if (!is_encrypted) {
    text.resize(static_cast<std::size_t>(bytes));
    file.read_exactly_at(0, text.data(), bytes);
    return text;
  }
  SealedShard opened(manifest, shard);
  for (std::int64_t block = 0; std::ssize(text) < bytes; ++block) {
    std::vector<std::byte> sealed(static_cast<std::size_t>(bytes_of_block(stored, block)));
    std::vector<std::byte> plain(sealed.size());
    file.read_exactly_at(block * kDigestBlockBytes, sealed.data(), std::ssize(sealed));
    opened.open_block(block, sealed.data(), plain.data());
    text.append(reinterpret_cast<const char*>(plain.data()), plain.size());
  }
  text.resize(static_cast<std::size_t>(bytes));
  return text;
}

}  // namespace trireme
