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

// A run of elements that lie together in the file, from element `first` of the request on, row by
// row where these lie apart.
void add_run(Pieces& pieces, std::int64_t shard, std::int64_t offset, const SharedRun& run,
             const BlockRequest& request) {
  const BlockRows rows = block_rows(request.extent, request.pitch);
  const std::int64_t size = size_of(request.data.dtype);
  auto* const data = static_cast<std::byte*>(request.data.data);
  for (std::int64_t done = 0; done < run.elements;) {
    const std::int64_t first = run.first + done;
    const std::int64_t left = run.elements - done;
    const std::int64_t n = rows.dense() ? left : std::min(rows.width - first % rows.width, left);
    add_segment(pieces, shard,
                {offset + (run.second + done) * size, n * size, data + rows.at(first) * size});
    done += n;
  }
}

}  // namespace

std::vector<Piece> plan_read(const Manifest& manifest, std::span<const BlockRequest> requests) {
  Pieces pieces;
  for (const BlockRequest& request : requests) {
    const StoredTensor* tensor = manifest.find(request.name);
    check(tensor != nullptr, "a requested tensor is in the checkpoint");
    const std::vector<Run1d> wanted = runs_of(request.extent, request.shape);
    for (const StoredBlock& block : tensor->blocks) {
      if (!may_overlap(block.extent, request.extent)) {
        continue;
      }
      for (const SharedRun& run : shared_runs(wanted, runs_of(block.extent, tensor->shape))) {
        add_run(pieces, block.shard, block.offset, run, request);
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
