#include "io/data/block_cache.h"

#include <utility>

namespace trireme {

std::unique_lock<std::mutex> BlockCache::lock() const {
  constexpr int kTries = 1000;
  std::unique_lock held(mutex_, std::try_to_lock);
  for (int i = 0; i < kTries && !held; ++i) {
    (void)held.try_lock();
  }
  if (!held) {
    held.lock();
  }
  return held;
}

BlockCache::Block BlockCache::find(std::size_t shard, std::int64_t number) {
  const std::unique_lock held = lock();
  const auto found = index_.find({shard, number});
  if (found == index_.end()) {
    return nullptr;
  }
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->bytes;
}

bool BlockCache::contains(std::size_t shard, std::int64_t number) const {
  const std::unique_lock held = lock();
  return index_.contains({shard, number});
}

BlockCache::Block BlockCache::add(std::size_t shard, std::int64_t number, Bytes bytes) {
  const std::unique_lock held = lock();
  if (const auto found = index_.find({shard, number}); found != index_.end()) {
    unused_.push_back(std::move(bytes));
    return found->second->bytes;
  }
  if (entries_.size() >= most_blocks_) {
    drop_oldest();
  }
  entries_.push_front({{shard, number}, std::make_shared<Bytes>(std::move(bytes))});
  index_.emplace(Place{shard, number}, entries_.begin());
  return entries_.front().bytes;
}

// The memory is kept unless somebody still reads the block.
void BlockCache::drop_oldest() {
  Entry& oldest = entries_.back();
  if (oldest.bytes.use_count() == 1) {
    unused_.push_back(std::move(*oldest.bytes));
  }
  index_.erase(oldest.place);
  entries_.pop_back();
}

BlockCache::Bytes BlockCache::take_memory(std::size_t bytes) {
  Bytes memory;
  {
    const std::unique_lock held = lock();
    if (!unused_.empty()) {
      memory = std::move(unused_.back());
      unused_.pop_back();
    } else if (entries_.size() >= most_blocks_) {
      drop_oldest();
      if (!unused_.empty()) {
        memory = std::move(unused_.back());
        unused_.pop_back();
      }
    }
  }
  memory.resize(bytes);
  return memory;
}

}  // namespace trireme
