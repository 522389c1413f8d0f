// DocumentIndex finds the documents of a range of tokens in one shard. The first call reads and
// checks the offsets of all documents of the shard, and keeps every 512th of them; later calls read
// those between two that are kept, so that memory grows with 1/64 byte per document. Any number of
// threads may call it at once. Private to io/data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "io/data/dataset_shard.h"

namespace trireme {

class DocumentIndex {
 public:
  // Borrows both.
  DocumentIndex(DatasetShard& shard, const ShardEntry& entry) : shard_(shard), entry_(entry) {}

  // Returns 0, then the end of each document, in tokens. Throws DataError unless they ascend to the
  // number of the shard's tokens; empty documents are allowed.
  std::vector<std::int64_t> offsets() const;
  // Sets `to` to the ends in (first, first + count], ascending and each once. Throws as offsets().
  void ends(std::int64_t first, std::int64_t count, std::vector<std::int64_t>& to,
            std::vector<std::byte>& scratch);

 private:
  const std::vector<std::int64_t>& kept();
  // Reads `count` offsets from number `first` on.
  const std::byte* read(std::int64_t first, std::int64_t count,
                        std::vector<std::byte>& scratch) const;

  DatasetShard& shard_;
  const ShardEntry& entry_;
  std::mutex mutex_;
  std::vector<std::int64_t> kept_;  // each kEvery-th offset; filled once, under mutex_
};

}  // namespace trireme
