#include "io/data/encrypted_shard.h"

#include <algorithm>
#include <cstring>

#include "io/data/block_digests.h"
#include "io/data/shard_cipher.h"
#include "src/base/error.h"

namespace trireme {

EncryptedShard::EncryptedShard(std::filesystem::path path, const ShardEntry& entry,
                               std::size_t number, std::shared_ptr<const DataKey> key,
                               BlockCache& cache)
    : DatasetShard(std::move(path), entry), number_(number), key_(std::move(key)), cache_(cache) {}

EncryptedShard::Opener EncryptedShard::take_opener() {
  {
    const std::lock_guard lock(idle_mutex_);
    if (!idle_.empty()) {
      Opener opener = std::move(idle_.back());
      idle_.pop_back();
      return opener;
    }
  }
  return {shard_cipher(*key_, entry()), {}};
}

BlockCache::Block EncryptedShard::block(std::int64_t number) {
  if (BlockCache::Block found = cache_.find(number_, number)) {
    return found;
  }
  if (key_ == nullptr) {
    throw PolicyError(fmt::format(
        "{}: the dataset is encrypted, and no key was given: see encryption.keys and --key",
        path().string()));
  }
  const std::int64_t bytes = block_bytes(number, entry().bytes);
  const File& file = opened();
  Opener opener = take_opener();
  opener.sealed.resize(static_cast<std::size_t>(bytes));
  file.read_exactly_at(number * kBlockBytes, opener.sealed.data(), bytes);
  BlockCache::Bytes plain = cache_.take_memory(static_cast<std::size_t>(bytes));
  open_shard_block(opener.cipher, entry(), path(), number, opener.sealed.data(), plain.data());
  {
    const std::lock_guard lock(idle_mutex_);
    idle_.push_back(std::move(opener));
  }
  return cache_.add(number_, number, std::move(plain));
}

const std::byte* EncryptedShard::read(std::int64_t offset, std::int64_t bytes,
                                      std::vector<std::byte>& scratch) {
  if (scratch.size() < static_cast<std::size_t>(bytes)) {
    scratch.resize(static_cast<std::size_t>(bytes));
  }
  for (std::int64_t done = 0; done < bytes;) {
    const std::int64_t number = (offset + done) / kBlockBytes;
    const std::int64_t at = offset + done - number * kBlockBytes;
    const BlockCache::Block plain = block(number);
    const std::int64_t some = std::min(bytes - done, std::ssize(*plain) - at);
    std::memcpy(scratch.data() + done, plain->data() + at, static_cast<std::size_t>(some));
    done += some;
  }
  return scratch.data();
}

void EncryptedShard::will_need(std::int64_t offset, std::int64_t bytes) {
  for (std::int64_t number = offset / kBlockBytes; number * kBlockBytes < offset + bytes;
       ++number) {
    if (!cache_.contains(number_, number)) {
      opened().will_need(number * kBlockBytes, block_bytes(number, entry().bytes));
    }
  }
}

}  // namespace trireme
