// Defines the canonical tree of a sum over numbered leaves 0..n-1: the root is [0,n), and a node
// [lo,hi) of more than one leaf is the sum of [lo,mid) and [mid,hi) with mid = lo + (hi-lo)/2
// (tree_middle.h). The leaves are the micro-batches of a step. A rank computes the part of the tree
// over its own leaves; the communicator, whose tree over the ranks has the same shape, computes the
// rest. Pure functions.
#pragma once

#include <cstdint>

namespace trireme {

struct LeafRange {
  std::int64_t lo = 0;
  std::int64_t hi = 0;
  std::int64_t count() const { return hi - lo; }
  friend bool operator==(const LeafRange&, const LeafRange&) = default;
};

// The leaves of a node are summed from the left, on a stack: push a leaf, then replace the two
// topmost sums by their sum as many times as this function returns. After the node's last leaf, one
// sum is left.
int merges_after(std::int64_t leaf, LeafRange node);

// Returns the largest height of that stack, which is the number of buffers that a rank needs:
// ceil(log2(leaves)) + 1.
int stack_height(std::int64_t leaves);

}  // namespace trireme
