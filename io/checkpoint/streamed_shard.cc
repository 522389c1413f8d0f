#include "io/checkpoint/streamed_shard.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "io/checkpoint/safetensors.h"
#include "io/checkpoint/staging.h"
#include "io/checkpoint/workers.h"
#include "src/base/digest.h"
#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::int64_t kStreamedBytes = std::int64_t{8} << 20;
constexpr std::int64_t kElementBytes = 4;

class StreamedShard {
 public:
  StreamedShard(const std::filesystem::path& folder, std::int64_t number,
                std::span<const StreamedTensor> tensors, const MakeElements& make,
                const DataKey* key)
      : path_(folder / shard_file_name(number)), make_(make), key_(key) {
    std::vector<SafetensorsEntry> entries;
    std::int64_t at = 0;
    for (const StreamedTensor& tensor : tensors) {
      const std::int64_t end = at + tensor.shape.elements() * kElementBytes;
      entries.push_back({tensor.name, DType::f32, tensor.shape.to_vector(), at, end});
      at = end;
    }
    head_ = encode_safetensors_header({{"format", "pt"}, {kShardField, std::to_string(number)}},
                                      entries, kDataAlignment);
    const std::int64_t data = std::ssize(head_);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const StreamedTensor& tensor = tensors[i];
      parts_.push_back({&tensor, data + entries[i].begin, data + entries[i].end});
      tensors_.push_back({tensor.name,
                          DType::f32,
                          tensor.shape,
                          {{0, data + entries[i].begin, Extent::whole(tensor.shape)}}});
    }
    std::sort(tensors_.begin(), tensors_.end(),
              [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; });
    shard_.file = shard_file_name(number);
    shard_.bytes = data + at;
    const std::int64_t blocks = round_up(shard_.bytes, kDigestBlockBytes) / kDigestBlockBytes;
    shard_.block_digests.resize(static_cast<std::size_t>(blocks));
    shard_.tags.resize(key == nullptr ? 0 : static_cast<std::size_t>(blocks));
  }

  ShardTable write(const ShardIo& io) {
    File file = File::create_new(path_);
    file.reserve(shard_.bytes);
    const std::int64_t pieces = round_up(shard_.bytes, kStreamedBytes) / kStreamedBytes;
    const std::int64_t at_once = std::clamp<std::int64_t>(io.threads, 1, pieces);
    const PageBuffer buffer(at_once * kStreamedBytes);
    Xxh3 whole;
    for (std::int64_t first = 0; first < pieces; first += at_once) {
      const std::int64_t count = std::min(at_once, pieces - first);
      parallel_for(static_cast<int>(at_once), count, [&](std::int64_t i) {
        write_piece(file, (first + i) * kStreamedBytes, buffer.data() + i * kStreamedBytes);
      });
      whole.update(buffer.data(),
                   std::min(count * kStreamedBytes, shard_.bytes - first * kStreamedBytes));
    }
    shard_.digest = whole.value();
    file.sync();
    file.close();
    if (io.read_back) {
      read_back(io);
    }
    return {{shard_}, tensors_};
  }

 private:
  struct Part {
    const StreamedTensor* tensor;
    std::int64_t begin;  // bytes from the start of the file
    std::int64_t end;
  };

  // Sets `to` to the bytes [at, at + bytes) of the file before encryption.
  void fill(std::int64_t at, std::int64_t bytes, std::byte* to) const {
    const std::int64_t head = std::clamp<std::int64_t>(std::ssize(head_) - at, 0, bytes);
    if (head > 0) {
      std::memcpy(to, head_.data() + at, static_cast<std::size_t>(head));
    }
    auto part = std::upper_bound(parts_.begin(), parts_.end(), at + head,
                                 [](std::int64_t byte, const Part& p) { return byte < p.end; });
    for (std::int64_t from = at + head; from < at + bytes; ++part) {
      const std::int64_t end = std::min(part->end, at + bytes);
      if (end > from) {
        make_(part->tensor->name, (from - part->begin) / kElementBytes,
              (end - from) / kElementBytes, reinterpret_cast<float*>(to + (from - at)));
        from = end;
      }
    }
  }

  void write_piece(File& file, std::int64_t at, std::byte* buffer) {
    const std::int64_t bytes = std::min(kStreamedBytes, shard_.bytes - at);
    fill(at, bytes, buffer);
    for (std::int64_t done = 0; done < bytes; done += kDigestBlockBytes) {
      const std::int64_t block = (at + done) / kDigestBlockBytes;
      const std::int64_t length = std::min(kDigestBlockBytes, bytes - done);
      if (key_ != nullptr) {
        const bool is_last = at + done + length == shard_.bytes;
        shard_.tags[static_cast<std::size_t>(block)] =
            BlockCipher(*key_, shard_.file)
                .seal({block, is_last}, buffer + done, length, buffer + done);
      }
      shard_.block_digests[static_cast<std::size_t>(block)] = xxh3(buffer + done, length);
    }
    file.write_at(at, buffer, bytes);
  }

  void read_back(const ShardIo& io) const {
    const std::vector<std::string> faults = verify_shard(path_.parent_path(), shard_, io, {});
    if (!faults.empty()) {
      throw IoError(
          fmt::format("{} was not written correctly: {}", path_.string(), faults.front()));
    }
  }

  std::filesystem::path path_;
  const MakeElements& make_;
  const DataKey* key_;
  std::string head_;
  std::vector<Part> parts_;  // in file order
  std::vector<StoredTensor> tensors_;
  StoredShard shard_;
};

}  // namespace

ShardTable write_streamed_shard(const std::filesystem::path& folder, std::int64_t number,
                                std::span<const StreamedTensor> tensors, const MakeElements& make,
                                const DataKey* key, const ShardIo& io) {
  return StreamedShard(folder, number, tensors, make, key).write(io);
}

}  // namespace trireme
