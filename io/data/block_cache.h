// BlockCache keeps the blocks of encrypted shards that were decrypted last, since a sample needs a
// small part of a block, and a block can only be decrypted as a whole. The default shuffle reads
// windows of 128 MiB in random order, so the cache has room for a window. Any number of threads may
// use it. Private to io/data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace trireme {

class BlockCache {
 public:
  using Bytes = std::vector<std::byte>;
  using Block = std::shared_ptr<const Bytes>;

  explicit BlockCache(std::size_t most_blocks) : most_blocks_(most_blocks) {}

  // Returns null if the block is not there.
  Block find(std::size_t shard, std::int64_t number);
  bool contains(std::size_t shard, std::int64_t number) const;
  // Adds a block, or returns the one that another thread has added meanwhile.
  Block add(std::size_t shard, std::int64_t number, Bytes bytes);
  // Returns memory for a block, [bytes], with any contents: that of a block that is no longer used,
  // if there is one.
  Bytes take_memory(std::size_t bytes);

 private:
  struct Place {
    std::size_t shard;
    std::int64_t number;
    friend bool operator==(const Place&, const Place&) = default;
  };
  struct PlaceHash {
    std::size_t operator()(const Place& place) const {
      return place.shard * 1'000'003 + static_cast<std::size_t>(place.number);
    }
  };
  struct Entry {
    Place place;
    std::shared_ptr<Bytes> bytes;
  };
  void drop_oldest();
  // Locks, and first tries for a moment: the lock is held for less time than it takes to sleep.
  std::unique_lock<std::mutex> lock() const;

  std::size_t most_blocks_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // the one used last is first
  std::unordered_map<Place, std::list<Entry>::iterator, PlaceHash> index_;
  std::vector<Bytes> unused_;
};

}  // namespace trireme
