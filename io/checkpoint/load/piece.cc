#include "io/checkpoint/load/piece.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include <fmt/ranges.h>

#include "io/checkpoint/sealed_shard.h"
#include "io/checkpoint/tiling.h"
#include "src/base/error.h"
#include "src/base/fault.h"

namespace trireme {
namespace {

using Pieces = std::map<std::pair<std::int64_t, std::int64_t>, Piece>;

// Adds a run to the pieces, divided at their boundaries.
void add_run(std::int64_t shard, ByteRun run, Pieces& pieces) {
  while (run.bytes > 0) {
    const std::int64_t number = run.offset / kPieceBytes;
    const std::int64_t bytes = std::min(run.bytes, (number + 1) * kPieceBytes - run.offset);
    Piece& piece = pieces[{shard, number}];
    piece.shard = shard;
    piece.number = number;
    piece.runs.push_back({run.memory, run.offset, bytes});
    const std::int64_t last = (run.offset + bytes - 1) / kDigestBlockBytes;
    for (std::int64_t i = run.offset / kDigestBlockBytes; i <= last; ++i) {
      piece.blocks.set(static_cast<std::size_t>(i - piece.first_block()));
    }
    run = {run.memory + bytes, run.offset + bytes, run.bytes - bytes};
  }
}

// Decrypts one digest block at a time, to its destination if one run takes all of it, else to
// memory that stays in the cache until the bytes are copied. The buffer keeps the encrypted bytes,
// which may have to be sent to other ranks.
void hand_out_sealed(const Piece& piece, const std::byte* buffer, const Manifest& manifest) {
  SealedShard shard(manifest, piece.shard);
  const StoredShard& stored = manifest.shards[static_cast<std::size_t>(piece.shard)];
  const auto plain = std::make_unique_for_overwrite<std::byte[]>(kDigestBlockBytes);
  for (std::int64_t i = 0; i < kPieceBlocks; ++i) {
    if (!piece.blocks.test(static_cast<std::size_t>(i))) {
      continue;
    }
    const std::int64_t block = piece.first_block() + i;
    const std::int64_t begin = block * kDigestBlockBytes;
    const std::int64_t end = begin + digest_block_bytes(stored, block);
    const std::byte* const sealed = buffer + i * kDigestBlockBytes;
    const auto whole = std::find_if(piece.runs.begin(), piece.runs.end(), [&](const ByteRun& run) {
      return run.offset <= begin && run.offset + run.bytes >= end;
    });
    std::byte* const opened =
        whole == piece.runs.end() ? plain.get() : whole->memory + (begin - whole->offset);
    shard.open_block(block, sealed, opened);
    for (const ByteRun& run : piece.runs) {
      const std::int64_t first = std::max(run.offset, begin);
      const std::int64_t last = std::min(run.offset + run.bytes, end);
      if (first < last && run.memory + (first - run.offset) != opened) {
        std::memcpy(run.memory + (first - run.offset), opened + (first - begin),
                    static_cast<std::size_t>(last - first));
      }
    }
  }
}

}  // namespace

std::vector<std::string> mismatches(const Manifest& manifest, std::span<const TensorBlock> blocks) {
  std::vector<std::string> lines;
  const auto add_once = [&lines](std::string line) {  // the blocks of a tensor follow one another
    if (lines.empty() || lines.back() != line) {
      lines.push_back(std::move(line));
    }
  };
  for (const TensorBlock& block : blocks) {
    check_block(block);
    const StoredTensor* tensor = manifest.find(block.name);
    if (tensor == nullptr) {
      add_once(fmt::format("{}: the checkpoint has no such tensor", block.name));
    } else if (tensor->dtype != block.data.dtype || !(tensor->shape == block.shape)) {
      add_once(fmt::format("{}: checkpoint {} {}, run {} {}", block.name, dtype_name(tensor->dtype),
                           tensor->shape.to_string(), dtype_name(block.data.dtype),
                           block.shape.to_string()));
    }
  }
  return lines;
}

void check_fits(const Manifest& manifest, std::span<const TensorBlock> blocks,
                const std::filesystem::path& file) {
  if (const auto wrong = mismatches(manifest, blocks); !wrong.empty()) {
    throw DataError(fmt::format("{}: its tensors do not match its model:\n  {}", file.string(),
                                fmt::join(wrong, "\n  ")));
  }
}

std::vector<Piece> plan_read(const Manifest& manifest, std::span<const TensorBlock> blocks) {
  Pieces pieces;
  for (const TensorBlock& block : blocks) {
    const StoredTensor* tensor = manifest.find(block.name);
    check(tensor != nullptr, "a wanted tensor is in the checkpoint");
    const std::vector<Run1d> wanted = runs_of(block.extent, block.shape);
    for (const StoredBlock& stored : tensor->blocks) {
      if (!may_overlap(stored.extent, block.extent)) {
        continue;
      }
      std::vector<ByteRun> runs;
      for (const SharedRun& run : shared_runs(wanted, runs_of(stored.extent, tensor->shape))) {
        add_byte_runs(block, run.first, run.elements,
                      stored.offset + run.second * size_of(tensor->dtype), runs);
      }
      for (const ByteRun& run : runs) {
        add_run(stored.shard, run, pieces);
      }
    }
  }
  std::vector<Piece> plan;
  for (auto& [key, piece] : pieces) {
    plan.push_back(std::move(piece));
  }
  return plan;
}

std::int64_t digest_block_bytes(const StoredShard& shard, std::int64_t block) {
  return std::min(kDigestBlockBytes, shard.bytes - block * kDigestBlockBytes);
}

std::int64_t bytes_of(const StoredShard& shard, const Piece& piece) {
  std::int64_t bytes = 0;
  for (std::int64_t i = 0; i < kPieceBlocks; ++i) {
    if (piece.blocks.test(static_cast<std::size_t>(i))) {
      bytes += digest_block_bytes(shard, piece.first_block() + i);
    }
  }
  return bytes;
}

void read_piece(const ShardReader& shard, const Piece& piece, std::byte* buffer,
                const PieceBlocks& blocks) {
  const PieceBlocks wanted = piece.blocks & blocks;
  for (std::int64_t first = 0; first < kPieceBlocks;) {
    std::int64_t last = first;
    while (last < kPieceBlocks && wanted.test(static_cast<std::size_t>(last))) {
      ++last;
    }
    if (last > first) {
      shard.read_blocks(piece.first_block() + first, piece.first_block() + last,
                        buffer + first * kDigestBlockBytes);
    }
    first = last + 1;
  }
}

void hand_out(const Piece& piece, const std::byte* buffer, const Manifest& manifest) {
  fault("load.reshard");
  if (is_sealed(manifest, piece.shard)) {
    hand_out_sealed(piece, buffer, manifest);
    return;
  }
  for (const ByteRun& run : piece.runs) {
    std::memcpy(run.memory, buffer + (run.offset - piece.number * kPieceBytes),
                static_cast<std::size_t>(run.bytes));
  }
}

}  // namespace trireme
