#include "io/data/sealed_check.h"

#include "io/data/block_digests.h"
#include "io/data/shard_cipher.h"
#include "src/base/error.h"

namespace trireme {

SealedCheck::SealedCheck(const std::filesystem::path& path, const DataKey& key,
                         const ShardEntry& entry)
    : path_(path),
      entry_(entry),
      cipher_(shard_cipher(key, entry)),
      plain_(static_cast<std::size_t>(kBlockBytes)) {}

const std::byte* SealedCheck::see(const void* sealed, std::int64_t bytes) {
  const std::int64_t block = block_++;
  if (block >= std::ssize(entry_.blocks) ||
      xxh3(sealed, bytes) != entry_.blocks[static_cast<std::size_t>(block)]) {
    return nullptr;  // damaged, which the comparison of the digests reports
  }
  try {
    open_shard_block(cipher_, entry_, path_, block, static_cast<const std::byte*>(sealed),
                     plain_.data());
  } catch (const DataError& error) {
    forged_.emplace_back(error.what());
    return nullptr;
  }
  whole_.update(plain_.data(), bytes);
  return plain_.data();
}

void SealedCheck::finish() {
  if (whole_.value() != entry_.plain_xxh3) {
    throw DataError(
        fmt::format("{}: all blocks open, but the decrypted file does not have its digest: the "
                    "manifest contradicts itself",
                    path_.string()));
  }
}

}  // namespace trireme
