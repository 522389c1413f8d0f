#include "io/checkpoint/piece.h"

#include <algorithm>
#include <cstring>

#include "src/base/fault.h"

namespace trireme {

PieceBlocks wanted_blocks(const Piece& piece) {
  PieceBlocks wanted;
  const std::int64_t begin = piece.number * kPieceBytes;
  for (const Segment& segment : piece.segments) {
    const std::int64_t last = (segment.offset + segment.bytes - 1 - begin) / kDigestBlockBytes;
    for (std::int64_t i = (segment.offset - begin) / kDigestBlockBytes; i <= last; ++i) {
      wanted.set(static_cast<std::size_t>(i));
    }
  }
  return wanted;
}

std::int64_t digest_block_bytes(const StoredShard& shard, std::int64_t block) {
  return std::min(kDigestBlockBytes, shard.bytes - block * kDigestBlockBytes);
}

std::int64_t bytes_of(const StoredShard& shard, std::int64_t piece_number,
                      const PieceBlocks& blocks) {
  std::int64_t bytes = 0;
  for (std::int64_t i = 0; i < kPieceBlocks; ++i) {
    if (blocks.test(static_cast<std::size_t>(i))) {
      bytes += digest_block_bytes(shard, piece_number * kPieceBlocks + i);
    }
  }
  return bytes;
}

std::int64_t read_blocks_of(const ShardReader& shard, std::int64_t piece_number,
                            const PieceBlocks& wanted, std::byte* buffer) {
  const std::int64_t base = piece_number * kPieceBlocks;
  for (std::int64_t first = 0; first < kPieceBlocks;) {
    std::int64_t last = first;
    while (last < kPieceBlocks && wanted.test(static_cast<std::size_t>(last))) {
      ++last;
    }
    if (last > first) {
      shard.read_blocks(base + first, base + last, buffer + first * kDigestBlockBytes);
    }
    first = last + 1;
  }
  return bytes_of(shard.shard(), piece_number, wanted);
}

std::int64_t read_piece(const ShardReader& shard, const Piece& piece, std::byte* buffer) {
  return read_blocks_of(shard, piece.number, wanted_blocks(piece), buffer);
}

void hand_out(const Piece& piece, const std::byte* buffer) {
  fault("load.reshard");
  for (const Segment& segment : piece.segments) {
    std::memcpy(segment.to, buffer + (segment.offset - piece.number * kPieceBytes),
                static_cast<std::size_t>(segment.bytes));
  }
}

}  // namespace trireme
