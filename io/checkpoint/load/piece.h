// Pieces: a read plan, which bytes of which shards make up the wanted blocks, in parts that one
// thread reads at a time. A piece on its way from shard to tensors: which digest blocks it needs,
// reading them, and copying their bytes to where they belong.
#pragma once

#include <bitset>
#include <span>

#include "io/checkpoint/byte_runs.h"
#include "io/checkpoint/shard_file.h"

namespace trireme {

inline constexpr std::int64_t kPieceBlocks = 8;
inline constexpr std::int64_t kPieceBytes = kPieceBlocks * kDigestBlockBytes;
using PieceBlocks = std::bitset<kPieceBlocks>;

// Bytes [number * kPieceBytes, (number + 1) * kPieceBytes) of a shard.
struct Piece {
  std::int64_t shard = 0;
  std::int64_t number = 0;
  PieceBlocks blocks;              // the digest blocks that hold wanted bytes
  std::vector<ByteRun> runs = {};  // where the wanted bytes go, on the rank that wants them

  // Of the shard's digest blocks, the piece's first.
  std::int64_t first_block() const { return number * kPieceBlocks; }
};

// What keeps the blocks from being loaded from such a checkpoint: a missing tensor, another shape
// or type, a line each.
std::vector<std::string> mismatches(const Manifest& manifest, std::span<const TensorBlock> blocks);
// Sorted by shard and number. The blocks match the manifest.
std::vector<Piece> plan_read(const Manifest& manifest, std::span<const TensorBlock> blocks);

// Of the shard's `block`-th digest block.
std::int64_t digest_block_bytes(const StoredShard& shard, std::int64_t block);
// Of all blocks that are wanted of the piece.
std::int64_t bytes_of(const StoredShard& shard, const Piece& piece);

// Reads those of the piece's blocks that are in `blocks` too, each to its place in `buffer`
// [kPieceBytes, page-aligned], and checks them. DataError names what is damaged.
void read_piece(const ShardReader& shard, const Piece& piece, std::byte* buffer,
                const PieceBlocks& blocks = ~PieceBlocks());
// Copies the runs to where they belong.
void hand_out(const Piece& piece, const std::byte* buffer);

}  // namespace trireme
