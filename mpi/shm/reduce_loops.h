// Computes sums, maxima and minima over the memory of several ranks at once, in the order of the
// canonical tree (communicator.h). For 2, 4 and 8 ranks the loops take one pass over the memory
// with the widest vectors that the processor has; for other numbers they work block by block in the
// first-level cache. There are no products to contract, so the instruction set does not affect the
// bits. Pure functions, for any thread.
#pragma once

#include <span>

#include "mpi/communicator.h"

namespace trireme {

// For each destination j, sets into[j][i] to the tree over from[0][i] ... from[n-1][i]. There are n
// >= 2 sources and any number of destinations of `count` elements each. bf16 is widened, reduced in
// f32 and narrowed once. A destination may be one of the sources; otherwise they do not overlap.
void reduce_tree(std::span<const void* const> from, std::span<void* const> into, std::int64_t count,
                 DType dtype, ReduceOp op);
// Does the same with stores that bypass the caches, if the number of sources and the alignment of
// the destinations allow it. This is faster if the destinations are not in the cache. No
// destination may be a source.
void reduce_tree_bypassing_caches(std::span<const void* const> from, std::span<void* const> into,
                                  std::int64_t count, DType dtype, ReduceOp op);

}  // namespace trireme
