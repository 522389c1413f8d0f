#include "io/checkpoint/shard_file.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include <fcntl.h>

#include "io/checkpoint/staging.h"
#include "io/checkpoint/workers.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/fault.h"
#include "src/base/units.h"

namespace trireme {
namespace {

constexpr std::int64_t kTransferBytes = std::int64_t{8} << 20;
constexpr std::int64_t kTransferBlocks = kTransferBytes / kDigestBlockBytes;
// Threads that write an encrypted image: while one waits for the disk, another encrypts what comes
// next. A plain image is written as fast by one.
constexpr int kSealingWriters = 2;

// Switches O_DIRECT on or off. Returns whether the file system accepts that.
bool set_direct(const File& file, bool on) {
  const int flags = ::fcntl(file.fd(), F_GETFL);
  return flags >= 0 && ::fcntl(file.fd(), F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

// Encrypts the first `end` bytes, if the snapshot is to be encrypted.
void seal_until(const Snapshot& snapshot, std::int64_t end) {
  if (snapshot.sealer != nullptr) {
    snapshot.sealer->seal_until(end);
  }
}

// Updates the digests of the whole file while each block is still cached from its own digest.
void add_digests(const Snapshot& snapshot, StoredShard& shard, bool with_sha256) {
  const std::byte* const image = snapshot.image;
  Xxh3 whole;
  std::optional<Sha256> sha256;
  if (with_sha256) {
    sha256.emplace();
  }
  shard.block_digests.clear();
  for (std::int64_t at = 0; at < shard.bytes; at += kDigestBlockBytes) {
    const std::int64_t bytes = std::min(kDigestBlockBytes, shard.bytes - at);
    seal_until(snapshot, at + bytes);
    shard.block_digests.push_back(xxh3(image + at, bytes));
    whole.update(image + at, bytes);
    if (sha256) {
      sha256->update(image + at, bytes);
    }
  }
  shard.digest = whole.value();
  shard.sha256 = sha256 ? sha256->finish_hex() : "";
  if (snapshot.sealer != nullptr) {
    shard.tags = snapshot.sealer->tags();
  }
}

void check_space(const std::filesystem::path& folder, std::int64_t bytes) {
  const std::int64_t free = free_bytes(folder);
  if (free < bytes + bytes / 10) {
    throw IoError(
        fmt::format("{} has {} free, but a shard of {} needs a tenth more than its size: free "
                    "space or keep fewer checkpoints",
                    folder.string(), format_bytes(free), format_bytes(bytes)));
  }
}

void write_image(File& file, const Snapshot& snapshot, bool direct) {
  const std::byte* const image = snapshot.image;
  const std::int64_t bytes = snapshot.bytes;
  const bool is_direct = direct && set_direct(file, true);
  const std::int64_t aligned = bytes / kDataAlignment * kDataAlignment;
  const std::int64_t parts = round_up(aligned, kTransferBytes) / kTransferBytes;
  parallel_for(snapshot.sealer == nullptr ? 1 : kSealingWriters, parts, [&](std::int64_t number) {
    fault("ckpt.shard_write");
    const std::int64_t at = number * kTransferBytes;
    const std::int64_t part = std::min(kTransferBytes, aligned - at);
    seal_until(snapshot, at + part);
    file.write_at(at, image + at, part);
  });
  seal_until(snapshot, bytes);
  if (is_direct && !set_direct(file, false)) {
    throw_errno(errno, "turn off direct I/O for", file.path());
  }
  file.write_at(aligned, image + aligned, bytes - aligned);
}

void read_back(const std::filesystem::path& path, const StoredShard& shard, const ShardIo& io) {
  File::open_to_read(path).wont_need(0, shard.bytes);
  const std::vector<std::string> faults = verify_shard(path.parent_path(), shard, io);
  if (!faults.empty()) {
    throw IoError(fmt::format(
        "a shard reads back differently from what was written: {}. Check dmesg and the storage",
        faults.front()));
  }
}

}  // namespace

StoredShard describe_shard(std::string file, const Snapshot& snapshot) {
  StoredShard shard{std::move(file), snapshot.bytes, 0, {}};
  add_digests(snapshot, shard, false);
  return shard;
}

StoredShard write_shard(const std::filesystem::path& path, const Snapshot& snapshot,
                        const ShardIo& io) {
  const std::int64_t bytes = snapshot.bytes;
  StoredShard shard{path.filename().string(), bytes, 0, {}};
  check_space(path.parent_path(), bytes);
  fault("ckpt.shard_open");
  File file = File::create_new(path);
  file.reserve(bytes);
  BackgroundJob digests;
  digests.start([&] { add_digests(snapshot, shard, io.sha256); });
  write_image(file, snapshot, io.direct);
  fault("ckpt.shard_sync");
  file.sync();
  file.close();
  digests.wait();
  if (digests.state() != BackgroundJob::State::succeeded) {
    add_digests(snapshot, shard, io.sha256);  // on this thread: no other one could be started
  }
  sync_directory(path.parent_path());
  if (io.read_back) {
    fault("ckpt.shard_read_back");
    read_back(path, shard, io);
  }
  fault("ckpt.shard_done");
  return shard;
}

ShardReader::ShardReader(const std::filesystem::path& folder, const StoredShard& shard, bool direct)
    : shard_(shard),
      plain_(File::open_to_read(folder / shard.file)),
      direct_(File::open_to_read(folder / shard.file)),
      has_direct_(direct && set_direct(direct_, true)) {
  if (plain_.size() != shard.bytes) {
    throw DataError(
        fmt::format("{} has {} bytes, but its manifest says {}: it was truncated or replaced",
                    plain_.path().string(), plain_.size(), shard.bytes));
  }
}

std::int64_t ShardReader::block_bytes(std::int64_t block) const {
  return std::min(kDigestBlockBytes, shard_.bytes - block * kDigestBlockBytes);
}

void ShardReader::read_unchecked(std::int64_t first, std::int64_t last, std::byte* to) const {
  const std::int64_t begin = first * kDigestBlockBytes;
  const std::int64_t end = std::min(last * kDigestBlockBytes, shard_.bytes);
  const std::int64_t aligned = has_direct_ ? end / kDataAlignment * kDataAlignment : begin;
  if (aligned > begin) {
    direct_.read_exactly_at(begin, to, aligned - begin);
  }
  plain_.read_exactly_at(std::max(begin, aligned), to + (std::max(begin, aligned) - begin),
                         end - std::max(begin, aligned));
}

std::string ShardReader::block_fault(std::int64_t block, const std::byte* at) const {
  if (xxh3(at, block_bytes(block)) == shard_.block_digests[static_cast<std::size_t>(block)]) {
    return "";
  }
  const std::int64_t begin = block * kDigestBlockBytes;
  return fmt::format(
      "{}: block {} (bytes {} to {}) does not have the digest in the manifest: the "
      "file is damaged",
      plain_.path().string(), block, begin, begin + block_bytes(block) - 1);
}

void ShardReader::read_blocks(std::int64_t first, std::int64_t last, std::byte* to) const {
  read_unchecked(first, last, to);
  fault("load.shard", to,
        std::min(last * kDigestBlockBytes, shard_.bytes) - first * kDigestBlockBytes);
  for (std::int64_t block = first; block < last && shard_.tags.empty(); ++block) {
    const std::string fault = block_fault(block, to + (block - first) * kDigestBlockBytes);
    if (!fault.empty()) {
      throw DataError(fault);
    }
  }
}

std::vector<std::string> verify_shard(const std::filesystem::path& folder, const StoredShard& shard,
                                      const ShardIo& io, const BlockCheck& also) {
  const auto blocks = static_cast<std::int64_t>(shard.block_digests.size());
  const std::int64_t chunks = round_up(blocks, kTransferBlocks) / kTransferBlocks;
  std::vector<std::string> faults(static_cast<std::size_t>(blocks));
  try {
    const ShardReader reader(folder, shard, io.direct);
    std::atomic<std::int64_t> next = 0;
    parallel_for(io.threads, io.threads, [&](std::int64_t) {
      const PageBuffer buffer(kTransferBytes);
      for (std::int64_t chunk = next++; chunk < chunks; chunk = next++) {
        const std::int64_t first = chunk * kTransferBlocks;
        const std::int64_t last = std::min(first + kTransferBlocks, blocks);
        reader.read_unchecked(first, last, buffer.data());
        for (std::int64_t block = first; block < last; ++block) {
          const std::byte* const at = buffer.data() + (block - first) * kDigestBlockBytes;
          std::string& fault = faults[static_cast<std::size_t>(block)];
          fault = reader.block_fault(block, at);
          if (fault.empty() && also) {
            fault = also(block, at);
          }
        }
      }
    });
  } catch (const PolicyError&) {
    throw;
  } catch (const ResourceError&) {
    throw;
  } catch (const Error& e) {
    faults.emplace_back(e.what());
  }
  std::erase(faults, "");
  return faults;
}

}  // namespace trireme
