// The read plan: which bytes of which shards make up the requested blocks, gathered into pieces
// that one thread reads at a time.
#pragma once

#include <span>
#include <vector>

#include "io/checkpoint/manifest.h"
#include "io/checkpoint/names.h"
#include "io/checkpoint/types.h"

namespace trireme {

inline constexpr std::int64_t kPieceBlocks = 8;
inline constexpr std::int64_t kPieceBytes = kPieceBlocks * kDigestBlockBytes;

// Bytes of a shard file that go to one place in memory.
struct Segment {
  std::int64_t offset;  // bytes from the start of the file
  std::int64_t bytes;
  std::byte* to;
};

// The segments within bytes [number * kPieceBytes, (number + 1) * kPieceBytes) of a shard.
struct Piece {
  std::int64_t shard = 0;
  std::int64_t number = 0;
  std::vector<Segment> segments;
};

// Pieces by shard and number. The requests match the manifest.
std::vector<Piece> plan_read(const Manifest& manifest, std::span<const BlockRequest> requests);

}  // namespace trireme
