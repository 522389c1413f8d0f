// Says how a sum in tree order over NCCL cuts its data into one block per rank, and how much
// scratch memory of the device it takes. Pure functions, which the prediction of memory uses as
// well.
#pragma once

#include <cstdint>

#include "mpi/operation_request.h"

namespace trireme {

// Rank r adds block r: elements [r * block, (r + 1) * block), cut at the end of the data. In
// scratch memory, the ranks' blocks start `stride` elements apart.
struct TreeSumBlocks {
  std::int64_t block = 0;
  std::int64_t stride = 0;
};

constexpr std::int64_t whole_blocks(std::int64_t elements) {
  constexpr std::int64_t kBlockElements = 64;  // blocks in scratch memory start at multiples of it
  return (elements + kBlockElements - 1) / kBlockElements * kBlockElements;
}

constexpr TreeSumBlocks all_reduce_blocks(std::int64_t count, int ranks) {
  const std::int64_t block = whole_blocks((count + ranks - 1) / ranks);
  return {block, block};
}

constexpr TreeSumBlocks reduce_scatter_blocks(std::int64_t count, int ranks) {
  return {count / ranks, whole_blocks(count / ranks)};
}

// Returns the bytes of scratch memory that the operation takes while it is queued.
constexpr std::int64_t scratch_bytes(const OperationRequest& request, SumOrder order, int ranks) {
  if (request.kind == OperationKind::barrier) {
    return sizeof(std::int32_t);
  }
  if (ranks == 1 || order == SumOrder::any) {
    return 0;
  }
  const std::int64_t count = request.into.count;
  const std::int64_t stride =
      request.kind == OperationKind::all_reduce       ? all_reduce_blocks(count, ranks).stride
      : request.kind == OperationKind::reduce_scatter ? reduce_scatter_blocks(count, ranks).stride
                                                      : 0;
  return ranks * stride * size_of(request.into.dtype);
}

}  // namespace trireme
