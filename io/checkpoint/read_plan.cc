#include "io/checkpoint/read_plan.h"

#include <algorithm>
#include <map>

#include "io/checkpoint/tiling.h"

namespace trireme {
namespace {

using Pieces = std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Segment>>;

// Cuts a segment where a piece ends.
void add_segment(Pieces& pieces, std::int64_t shard, Segment segment) {
  while (segment.bytes > 0) {
    const std::int64_t number = segment.offset / kPieceBytes;
    const std::int64_t bytes = std::min(segment.bytes, (number + 1) * kPieceBytes - segment.offset);
    pieces[{shard, number}].push_back({segment.offset, bytes, segment.to});
    segment = {segment.offset + bytes, segment.bytes - bytes, segment.to + bytes};
  }
}

}  // namespace

std::vector<Piece> plan_read(const Manifest& manifest, std::span<const BlockRequest> requests) {
  Pieces pieces;
  for (const BlockRequest& request : requests) {
    const StoredTensor* tensor = manifest.find(request.name);
    check(tensor != nullptr, "a requested tensor is in the checkpoint");
    const std::int64_t size = size_of(tensor->dtype);
    const std::vector<Run1d> wanted = runs_of(request.extent, request.shape);
    for (const StoredBlock& block : tensor->blocks) {
      if (!may_overlap(block.extent, request.extent)) {
        continue;
      }
      for (const SharedRun& run : shared_runs(wanted, runs_of(block.extent, tensor->shape))) {
        add_segment(pieces, block.shard,
                    {block.offset + run.second * size, run.elements * size,
                     static_cast<std::byte*>(request.data.data) + run.first * size});
      }
    }
  }
  std::vector<Piece> plan;
  for (auto& [key, segments] : pieces) {
    plan.push_back({key.first, key.second, std::move(segments)});
  }
  return plan;
}

}  // namespace trireme
