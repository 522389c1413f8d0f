// A read plan says which bytes of which shards make up the wanted blocks, in pieces that one thread
// reads at a time. For each piece it says which digest blocks to read and where to copy their
// bytes.
#pragma once

#include <bitset>
#include <filesystem>
#include <span>

#include "io/checkpoint/byte_runs.h"
#include "io/checkpoint/shard_file.h"

namespace trireme {

inline constexpr std::int64_t kPieceBlocks = 8;
inline constexpr std::int64_t kPieceBytes = kPieceBlocks * kDigestBlockBytes;
using PieceBlocks = std::bitset<kPieceBlocks>;

// A Piece is bytes [number * kPieceBytes, (number + 1) * kPieceBytes) of a shard.
struct Piece {
  std::int64_t shard = 0;
  std::int64_t number = 0;
  PieceBlocks blocks;  // the digest blocks that hold wanted bytes, counted from the piece's first
  std::vector<ByteRun> runs = {};  // where the wanted bytes go; only on the rank that wants them

  // Returns the index in the shard of the piece's first digest block.
  std::int64_t first_block() const { return number * kPieceBlocks; }
};

// Returns what prevents loading the blocks from this checkpoint, one line each: a missing tensor,
// or a different shape or type.
std::vector<std::string> mismatches(const Manifest& manifest, std::span<const TensorBlock> blocks);
// Throws DataError that names the file of the manifest and lists the mismatches, if there are any.
void check_fits(const Manifest& manifest, std::span<const TensorBlock> blocks,
                const std::filesystem::path& file);
// Returns the pieces sorted by shard and number. Precondition: the blocks match the manifest.
std::vector<Piece> plan_read(const Manifest& manifest, std::span<const TensorBlock> blocks);

// Returns the size of the shard's digest block `block`.
std::int64_t digest_block_bytes(const StoredShard& shard, std::int64_t block);
// Returns the size of all wanted blocks of the piece.
std::int64_t bytes_of(const StoredShard& shard, const Piece& piece);

// Reads the wanted blocks of the piece that are also in `blocks`, each to its place in `buffer`
// [kPieceBytes, page-aligned], and checks their digests. Throws DataError that names what is
// damaged.
void read_piece(const ShardReader& shard, const Piece& piece, std::byte* buffer,
                const PieceBlocks& blocks = ~PieceBlocks());
// Copies the piece's runs from `buffer` [kPieceBytes] to their destinations, decrypted if the shard
// is encrypted. Throws DataError if a block does not open.
void hand_out(const Piece& piece, const std::byte* buffer, const Manifest& manifest);

}  // namespace trireme
