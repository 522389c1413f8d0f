#include "io/data/shard_cipher.h"

#include <cstring>
#include <vector>

#include "io/data/block_digests.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/keys/manifest_fields.h"

namespace trireme {
namespace {

static_assert(kSealedBlockBytes == kBlockBytes, "a digest block is encrypted as one");

std::string new_salt() {
  std::string bytes(kSaltBytes, '\0');
  fill_random(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size());
  return hex_of_bytes(bytes);
}

BlockCipher digest_cipher(const DataKey& key, const ShardEntry& entry) {
  return {key, fmt::format("{} {} digest", entry.path, entry.salt)};
}

std::string seal_plain_digest(const DataKey& key, const ShardEntry& entry, std::uint64_t digest) {
  std::string sealed(kSealedDigestBytes, '\0');
  auto* const bytes = reinterpret_cast<std::byte*>(sealed.data());
  const BlockTag tag =
      digest_cipher(key, entry)
          .seal({0, true}, reinterpret_cast<const std::byte*>(&digest), sizeof digest, bytes);
  std::memcpy(bytes + sizeof digest, tag.data(), tag.size());
  return sealed;
}

}  // namespace

BlockCipher shard_cipher(const DataKey& key, const ShardEntry& entry) {
  return {key, fmt::format("{} {}", entry.path, entry.salt)};
}

void open_shard_block(BlockCipher& cipher, const ShardEntry& entry,
                      const std::filesystem::path& path, std::int64_t number,
                      const std::byte* sealed, std::byte* plain) {
  const auto index = static_cast<std::size_t>(number);
  const std::int64_t bytes = block_bytes(number, entry.bytes);
  const bool is_last = index + 1 == entry.tags.size();
  if (cipher.open({number, is_last}, sealed, bytes, entry.tags[index], plain)) {
    return;
  }
  const std::uint64_t found = xxh3(sealed, bytes);
  if (found != entry.blocks[index]) {
    throw DataError(damage_text(path, number, entry.bytes, entry.blocks[index], found));
  }
  throw DataError(fmt::format(
      "{}: block {} was not encrypted with the dataset's key for this place: somebody without the "
      "key changed it, or took it from another file or dataset; restore it from a copy",
      path.string(), number));
}

std::uint64_t open_plain_digest(const DataKey& key, const ShardEntry& entry) {
  std::uint64_t digest = 0;
  BlockTag tag{};
  std::memcpy(tag.data(), entry.sealed_xxh3.data() + sizeof digest, tag.size());
  if (!digest_cipher(key, entry)
           .open({0, true}, reinterpret_cast<const std::byte*>(entry.sealed_xxh3.data()),
                 sizeof digest, tag, reinterpret_cast<std::byte*>(&digest))) {
    throw DataError(
        fmt::format("{}: its entry in the manifest was not made with the dataset's key: the "
                    "manifest was changed, or has entries of another dataset",
                    entry.path));
  }
  return digest;
}

void seal_shard(File& file, const DataKey& key, const PlainRead& read, ShardEntry& entry,
                const std::function<void(std::int64_t)>& done) {
  entry.salt = new_salt();
  entry.tags.clear();
  entry.blocks.clear();
  BlockCipher cipher = shard_cipher(key, entry);
  file.reserve(entry.bytes);
  std::vector<std::byte> data(static_cast<std::size_t>(kBlockBytes));
  Xxh3 plain;
  Xxh3 sealed;
  const std::int64_t blocks = block_count(entry.bytes);
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::int64_t bytes = block_bytes(block, entry.bytes);
    read(block * kBlockBytes, bytes, data.data());
    plain.update(data.data(), bytes);
    entry.tags.push_back(
        cipher.seal({block, block + 1 == blocks}, data.data(), bytes, data.data()));
    sealed.update(data.data(), bytes);
    entry.blocks.push_back(xxh3(data.data(), bytes));
    file.write_at(block * kBlockBytes, data.data(), bytes);
    if (done) {
      done(bytes);
    }
  }
  file.sync();
  entry.xxh3 = sealed.value();
  entry.plain_xxh3 = plain.value();
  entry.sealed_xxh3 = seal_plain_digest(key, entry, entry.plain_xxh3);
}

}  // namespace trireme
