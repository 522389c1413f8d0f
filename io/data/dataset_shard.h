// DatasetShard is the file of one shard, which is not encrypted (encrypted_shard.h is derived from
// it). It is opened at the first read; each block is verified when it is first read, and again
// after the file has changed. Any number of threads may read at once. Private to io/data.
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
  // Borrows `entry`, which must stay at its address.
  DatasetShard(std::filesystem::path path, const ShardEntry& entry);
  virtual ~DatasetShard() = default;
  DatasetShard(const DatasetShard&) = delete;
  DatasetShard& operator=(const DatasetShard&) = delete;

  // Reads bytes [offset, offset + bytes) of the file into `scratch`. Throws DataError for damage,
  // even if it happened after the blocks were verified: the returned bytes were read while the file
  // still had the size and timestamps it had before verification.
  virtual const std::byte* read(std::int64_t offset, std::int64_t bytes,
                                std::vector<std::byte>& scratch);
  virtual void will_need(std::int64_t offset, std::int64_t bytes);
  // Throws DataError if the file is missing or has another size, and PolicyError if this user may
  // not read it.
  void check_size() const;
  const std::filesystem::path& path() const { return path_; }

 protected:
  const ShardEntry& entry() const { return entry_; }
  // Opens the file at the first call, and verifies its size and first block.
  const File& opened();

 private:
  bool is_verified(std::int64_t block) const;
  bool are_verified(std::int64_t offset, std::int64_t bytes) const;
  void verify(const File& file, std::int64_t block, std::vector<std::byte>& scratch) const;
  // Verifies those blocks of the range that have not been verified in this state of the file.
  // Returns whether the file is still in this state.
  bool verify_range(const File& file, std::uint64_t state, std::int64_t offset, std::int64_t bytes,
                    std::vector<std::byte>& scratch);
  void forget_verified(const File& file, std::uint64_t state);

  std::filesystem::path path_;
  const ShardEntry& entry_;
  std::mutex mutex_;
  std::optional<File> file_;
  std::atomic<bool> is_open_ = false;
  // State of the file that verified_ belongs to; changed under mutex_.
  std::atomic<std::uint64_t> state_ = 0;
  // One bit per block; cleared and set under mutex_.
  std::vector<std::atomic<std::uint64_t>> verified_;
};

}  // namespace trireme
