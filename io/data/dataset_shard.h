// DatasetShard: one shard's file, opened when first touched, its blocks verified when first read.
// Any number of threads may read at once. Private to io/data.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <vector>

#include "io/data/dataset_manifest.h"
#include "src/base/file.h"

namespace trireme {

class DatasetShard {
 public:
  // Borrows `entry`, which must not move.
  DatasetShard(std::filesystem::path path, const ShardEntry& entry);

  // Bytes [offset, offset + bytes) of the file, in scratch. DataError for damage.
  const std::byte* read(std::int64_t offset, std::int64_t bytes, std::vector<std::byte>& scratch);
  void will_need(std::int64_t offset, std::int64_t bytes);
  // DataError when the file is missing or has another size. Opens nothing.
  void check_size() const;
  const std::filesystem::path& path() const { return path_; }

 private:
  const File& opened();
  bool is_verified(std::int64_t block) const;
  bool are_verified(std::int64_t offset, std::int64_t bytes) const;
  void verify(const File& file, std::int64_t block, std::vector<std::byte>& scratch);

  std::filesystem::path path_;
  const ShardEntry& entry_;
  std::mutex mutex_;
  std::optional<File> file_;
  std::atomic<bool> is_open_ = false;
  std::vector<std::atomic<std::uint64_t>> verified_;  // a bit a block
};

}  // namespace trireme
