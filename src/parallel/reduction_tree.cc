#include "src/parallel/reduction_tree.h"

#include "src/base/check.h"
#include "src/base/tree_middle.h"

namespace trireme {
namespace {

// Returns the child that holds the leaf. The node has more than one leaf.
LeafRange child_with(LeafRange node, std::int64_t leaf) {
  const std::int64_t mid = tree_middle(node.lo, node.hi);
  return leaf < mid ? LeafRange{node.lo, mid} : LeafRange{mid, node.hi};
}

}  // namespace

// Counts one merge for each node that ends with this leaf.
int merges_after(std::int64_t leaf, LeafRange node) {
  check(leaf >= node.lo && leaf < node.hi, "a leaf lies in its node");
  int merges = 0;
  while (node.count() > 1) {
    merges += leaf + 1 == node.hi ? 1 : 0;
    node = child_with(node, leaf);
  }
  return merges;
}

// The right half, never the smaller one, is summed while the left half's sum is on the stack.
int stack_height(std::int64_t leaves) {
  check(leaves > 0, "a tree has leaves");
  int height = 1;
  for (; leaves > 1; leaves -= tree_middle(std::int64_t{0}, leaves)) {
    ++height;
  }
  return height;
}

}  // namespace trireme
