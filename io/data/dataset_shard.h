// DatasetShard: one shard's file, opened when first touched, its blocks verified when first read,
// and again when the file has changed since. Any number of threads may read at once. Private to
// io/data.
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

  // Bytes [offset, offset + bytes) of the file, in scratch. DataError for damage, also where the
  // file was damaged after its blocks were verified: what is returned was read while the file still
  // had the size and the times that it had before the verification.
  const std::byte* read(std::int64_t offset, std::int64_t bytes, std::vector<std::byte>& scratch);
  void will_need(std::int64_t offset, std::int64_t bytes);
  // DataError when the file is missing or has another size. Opens nothing.
  void check_size() const;
  const std::filesystem::path& path() const { return path_; }

 private:
  const File& opened();
  bool is_verified(std::int64_t block) const;
  bool are_verified(std::int64_t offset, std::int64_t bytes) const;
  void verify(const File& file, std::int64_t block, std::vector<std::byte>& scratch) const;
  // Verifies the blocks of the range that are not verified in this state of the file. Returns
  // whether the file is still in this state.
  bool verify_range(const File& file, std::uint64_t state, std::int64_t offset, std::int64_t bytes,
                    std::vector<std::byte>& scratch);
  void forget_verified(const File& file, std::uint64_t state);

  std::filesystem::path path_;
  const ShardEntry& entry_;
  std::mutex mutex_;
  std::optional<File> file_;
  std::atomic<bool> is_open_ = false;
  std::atomic<std::uint64_t> state_ = 0;  // of the file, as verified_ knows it; changed with mutex_
  std::vector<std::atomic<std::uint64_t>> verified_;  // a bit a block; changed with mutex_
};

}  // namespace trireme
