// EncryptedShard is the file of one encrypted shard. A block of 1 MiB is read, decrypted and
// authenticated as a whole, always from bytes that lie in this process; it is kept in a cache that
// all shards of a dataset share. Any number of threads may read at once. Private to io/data.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "io/data/block_cache.h"
#include "io/data/dataset_shard.h"
#include "src/keys/block_cipher.h"

namespace trireme {

class EncryptedShard : public DatasetShard {
 public:
  // number: of the shard in its dataset. key: null if nobody gave one; then read() throws
  // PolicyError. Borrows `entry` and `cache`.
  EncryptedShard(std::filesystem::path path, const ShardEntry& entry, std::size_t number,
                 std::shared_ptr<const DataKey> key, BlockCache& cache);

  const std::byte* read(std::int64_t offset, std::int64_t bytes,
                        std::vector<std::byte>& scratch) override;
  void will_need(std::int64_t offset, std::int64_t bytes) override;

 private:
  // What a thread needs to decrypt a block.
  struct Opener {
    BlockCipher cipher;
    std::vector<std::byte> sealed;
  };
  BlockCache::Block block(std::int64_t number);
  Opener take_opener();

  std::size_t number_;
  std::shared_ptr<const DataKey> key_;
  BlockCache& cache_;
  std::mutex idle_mutex_;
  std::vector<Opener> idle_;  // those that no thread uses
};

}  // namespace trireme
