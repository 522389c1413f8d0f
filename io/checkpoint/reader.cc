#include "io/checkpoint/reader.h"

#include <algorithm>
#include <atomic>
#include <map>

#include <fmt/ranges.h>

#include "io/checkpoint/piece.h"
#include "io/checkpoint/staging.h"
#include "io/checkpoint/workers.h"
#include "src/base/stopwatch.h"

namespace trireme {
namespace {

std::int64_t load_pieces(const std::vector<Piece>& pieces,
                         const std::map<std::int64_t, ShardReader>& shards, int threads) {
  const auto count = static_cast<std::int64_t>(pieces.size());
  const std::int64_t workers = std::min<std::int64_t>(threads, count);
  std::atomic<std::int64_t> next = 0;
  std::atomic<std::int64_t> bytes = 0;
  parallel_for(threads, workers, [&](std::int64_t) {
    const PageBuffer buffer(kPieceBytes);
    for (std::int64_t i = next++; i < count; i = next++) {
      const Piece& piece = pieces[static_cast<std::size_t>(i)];
      try {
        const ShardReader& shard = shards.at(piece.shard);
        read_piece(shard, piece, buffer.data());
        bytes += bytes_of(shard.shard(), piece);
        hand_out(piece, buffer.data());
      } catch (...) {
        next = count;
        throw;
      }
    }
  });
  return bytes;
}

}  // namespace

std::vector<std::string> mismatches(const Manifest& manifest, std::span<const TensorBlock> blocks) {
  std::vector<std::string> lines;
  for (const TensorBlock& block : blocks) {
    check_block(block);
    const StoredTensor* tensor = manifest.find(block.name);
    if (tensor == nullptr) {
      lines.push_back(fmt::format("{}: the checkpoint has no such tensor", block.name));
    } else if (tensor->dtype != block.data.dtype || !(tensor->shape == block.shape)) {
      lines.push_back(fmt::format("{}: checkpoint {} {}, run {} {}", block.name,
                                  dtype_name(tensor->dtype), tensor->shape.to_string(),
                                  dtype_name(block.data.dtype), block.shape.to_string()));
    }
  }
  return lines;
}

CheckpointReader::CheckpointReader(std::filesystem::path step_folder, Manifest manifest, ShardIo io)
    : folder_(std::move(step_folder)), manifest_(std::move(manifest)), io_(io) {}

LoadStats CheckpointReader::load(std::span<const TensorBlock> blocks) const {
  const Stopwatch watch;
  const std::vector<std::string> wrong = mismatches(manifest_, blocks);
  if (!wrong.empty()) {
    throw ConfigError(
        fmt::format("{} does not fit this run:\n  {}", folder_.string(), fmt::join(wrong, "\n  ")));
  }
  LoadStats stats;
  for (const TensorBlock& block : blocks) {
    stats.wanted_bytes += block.bytes();
  }
  const std::vector<Piece> pieces = plan_read(manifest_, blocks);
  std::map<std::int64_t, ShardReader> shards;
  for (const Piece& piece : pieces) {
    shards.try_emplace(piece.shard, folder_,
                       manifest_.shards[static_cast<std::size_t>(piece.shard)], io_.direct);
  }
  stats.read_bytes = load_pieces(pieces, shards, io_.threads);
  stats.seconds = watch.seconds();
  return stats;
}

}  // namespace trireme
