#include "io/data/dataset_shard.h"

#include <array>
#include <cerrno>

#include <sys/stat.h>

#include "io/data/block_digests.h"
#include "src/base/digest.h"
#include "src/base/error.h"

namespace trireme {
namespace fs = std::filesystem;

namespace {

[[noreturn]] void throw_missing(const fs::path& path) {
  throw DataError(fmt::format("{}: the shard is missing: restore it from a copy, or pack again",
                              path.string()));
}

[[noreturn]] void throw_size(const fs::path& path, std::int64_t found, std::int64_t expected) {
  throw DataError(
      fmt::format("{}: the file has {} bytes, but the manifest says {}: the shard is {}; restore "
                  "it from a copy, or pack again",
                  path.string(), found, expected,
                  found < expected ? "truncated" : "not the one that was packed"));
}

// If the file changes more often than this while one sample is read, some program is writing to it.
constexpr int kMostChanges = 1000;

// Returns a hash of the file's size, modification time and status change time. It changes with
// every write, within the resolution of the file system's timestamps. Programs can set the
// modification time, but not the status change time.
std::uint64_t state_of(const File& file) {
  struct stat status {};
  if (::fstat(file.fd(), &status) != 0) {
    throw_errno(errno, "read", file.path());
  }
  const std::array<std::int64_t, 5> state = {status.st_size, status.st_mtim.tv_sec,
                                             status.st_mtim.tv_nsec, status.st_ctim.tv_sec,
                                             status.st_ctim.tv_nsec};
  return xxh3(state.data(), sizeof state);
}

}  // namespace

DatasetShard::DatasetShard(fs::path path, const ShardEntry& entry)
    : path_(std::move(path)), entry_(entry), verified_((entry.blocks.size() + 63) / 64) {}

void DatasetShard::check_size() const {
  std::error_code code;
  const fs::file_status status = fs::status(path_, code);
  if (status.type() == fs::file_type::not_found) {
    throw_missing(path_);
  }
  const auto bytes = fs::is_regular_file(status) ? fs::file_size(path_, code) : 0;
  if (code) {
    throw_errno(code.value(), "read", path_);
  }
  if (!fs::is_regular_file(status)) {
    throw DataError(fmt::format(
        "{} is not a regular file: restore the shard from a copy, or pack again", path_.string()));
  }
  if (static_cast<std::int64_t>(bytes) != entry_.bytes) {
    throw_size(path_, static_cast<std::int64_t>(bytes), entry_.bytes);
  }
  (void)File::open_to_read(path_);  // throws if this user may not read it
}

const File& DatasetShard::opened() {
  if (!is_open_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(mutex_);
    if (!file_) {
      check_size();
      File file = File::open_to_read(path_);
      const std::uint64_t state = state_of(file);
      std::vector<std::byte> scratch;
      verify(file, 0, scratch);
      verified_[0].store(state_of(file) == state ? 1 : 0, std::memory_order_relaxed);
      state_.store(state, std::memory_order_release);
      file_ = std::move(file);
      is_open_.store(true, std::memory_order_release);
    }
  }
  return *file_;
}

bool DatasetShard::is_verified(std::int64_t block) const {
  const auto word = verified_[static_cast<std::size_t>(block / 64)].load(std::memory_order_relaxed);
  return (word >> (block % 64) & 1) != 0;
}

bool DatasetShard::are_verified(std::int64_t offset, std::int64_t bytes) const {
  for (std::int64_t block = offset / kBlockBytes; block * kBlockBytes < offset + bytes; ++block) {
    if (!is_verified(block)) {
      return false;
    }
  }
  return true;
}

void DatasetShard::verify(const File& file, std::int64_t block,
                          std::vector<std::byte>& scratch) const {
  const std::int64_t bytes = block_bytes(block, entry_.bytes);
  scratch.resize(static_cast<std::size_t>(bytes));
  file.read_exactly_at(block * kBlockBytes, scratch.data(), bytes);
  const std::uint64_t found = xxh3(scratch.data(), bytes);
  const std::uint64_t expected = entry_.blocks[static_cast<std::size_t>(block)];
  if (found != expected) {
    throw DataError(damage_text(path_, block, entry_.bytes, expected, found));
  }
}

// A block counts as verified only if the file was in the same state before and after its bytes were
// read, and verified_ belongs to that state.
bool DatasetShard::verify_range(const File& file, std::uint64_t state, std::int64_t offset,
                                std::int64_t bytes, std::vector<std::byte>& scratch) {
  for (std::int64_t block = offset / kBlockBytes; block * kBlockBytes < offset + bytes; ++block) {
    if (is_verified(block)) {
      continue;
    }
    verify(file, block, scratch);
    if (state_of(file) != state) {
      return false;
    }
    const std::lock_guard lock(mutex_);
    if (state_.load(std::memory_order_relaxed) != state) {
      return false;
    }
    verified_[static_cast<std::size_t>(block / 64)].fetch_or(std::uint64_t{1} << (block % 64),
                                                             std::memory_order_relaxed);
  }
  return true;
}

// Returns early if another thread has already noticed the change.
void DatasetShard::forget_verified(const File& file, std::uint64_t state) {
  const std::lock_guard lock(mutex_);
  if (state_.load(std::memory_order_relaxed) != state) {
    return;
  }
  const std::uint64_t now = state_of(file);
  if (const std::int64_t size = file.size(); size != entry_.bytes) {
    throw_size(path_, size, entry_.bytes);
  }
  for (std::atomic<std::uint64_t>& word : verified_) {
    word.store(0, std::memory_order_relaxed);
  }
  state_.store(now, std::memory_order_release);
}

// The state of the file is checked after the bytes are read. If it has not changed, these are the
// bytes that were verified.
const std::byte* DatasetShard::read(std::int64_t offset, std::int64_t bytes,
                                    std::vector<std::byte>& scratch) {
  const File& file = opened();
  for (int changes = 0; changes < kMostChanges; ++changes) {
    const std::uint64_t state = state_.load(std::memory_order_acquire);
    if (verify_range(file, state, offset, bytes, scratch)) {
      if (scratch.size() < static_cast<std::size_t>(bytes)) {
        scratch.resize(static_cast<std::size_t>(bytes));
      }
      file.read_exactly_at(offset, scratch.data(), bytes);
      if (state_of(file) == state) {
        return scratch.data();
      }
    }
    forget_verified(file, state);
  }
  throw DataError(fmt::format(
      "{}: the file changes all the time while it is read: a dataset must not be written to",
      path_.string()));
}

void DatasetShard::will_need(std::int64_t offset, std::int64_t bytes) {
  if (!are_verified(offset, bytes)) {
    const std::int64_t first = offset / kBlockBytes * kBlockBytes;
    opened().will_need(first, offset + bytes - first);
  }
}

}  // namespace trireme
