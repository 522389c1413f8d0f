// Finds out whether leaves are a node of the canonical tree, for tests.
#pragma once

#include "src/parallel/reduction_tree.h"

namespace trireme {

// Returns whether the range is a node of the tree over [0, leaves).
inline bool is_node(LeafRange range, std::int64_t leaves) {
  LeafRange node{0, leaves};
  while (range.lo >= 0 && range.lo < range.hi && range.hi <= leaves &&
         node.count() > range.count()) {
    const std::int64_t mid = node.lo + (node.hi - node.lo) / 2;
    node = range.lo < mid ? LeafRange{node.lo, mid} : LeafRange{mid, node.hi};
  }
  return node == range;
}

}  // namespace trireme
