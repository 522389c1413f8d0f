// Sums, maxima and minima over several ranks' memory at once, in the order of the canonical tree
// (communicator.h). For 2, 4 and 8 ranks one pass over the memory, with the widest vectors that the
// processor has; else block by block through the first-level cache. Adds alone, so the instruction
// set does not show in the bits. Pure functions, any thread.
#pragma once

#include <span>

#include "mpi/communicator.h"

namespace trireme {

// into[j][i] = the tree over from[0][i] ... from[n-1][i], for each j: n >= 2 sources and any number
// of destinations of `count` elements. bf16 is widened, reduced in f32 and narrowed once. A
// destination may be one of the sources; else they don't overlap.
void reduce_tree(std::span<const void* const> from, std::span<void* const> into, std::int64_t count,
                 DType dtype, ReduceOp op);
// The same with stores that bypass the caches, where the number of sources and the alignment of the
// destinations allow it. Faster if the destinations are not in the cache. No destination may be a
// source.
void reduce_tree_bypassing_caches(std::span<const void* const> from, std::span<void* const> into,
                                  std::int64_t count, DType dtype, ReduceOp op);

}  // namespace trireme
