// A piece of a read plan on its way from shard to tensors: which digest blocks it needs, reading
// them, and handing their bytes out.
#pragma once

#include <bitset>

#include "io/checkpoint/read_plan.h"
#include "io/checkpoint/shard_file.h"

namespace trireme {

using PieceBlocks = std::bitset<kPieceBlocks>;

// Which digest blocks of the piece hold wanted bytes.
PieceBlocks wanted_blocks(const Piece& piece);
// Of the shard's `block`-th digest block.
std::int64_t digest_block_bytes(const StoredShard& shard, std::int64_t block);
// Of all those blocks.
std::int64_t bytes_of(const StoredShard& shard, std::int64_t piece_number,
                      const PieceBlocks& blocks);

// Reads blocks of a piece, each to its place in `buffer` [kPieceBytes, page-aligned], and checks
// them; the bytes read. DataError names what is damaged.
std::int64_t read_blocks_of(const ShardReader& shard, std::int64_t piece_number,
                            const PieceBlocks& blocks, std::byte* buffer);
// The blocks that are wanted of it.
std::int64_t read_piece(const ShardReader& shard, const Piece& piece, std::byte* buffer);
// Copies the segments to where they belong.
void hand_out(const Piece& piece, const std::byte* buffer);

}  // namespace trireme
