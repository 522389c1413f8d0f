#include "src/parallel/reduction_tree.h"

#include "src/base/check.h"

namespace trireme {
namespace {

std::int64_t middle(LeafRange node) { return node.lo + (node.hi - node.lo) / 2; }

// Returns the child that holds the leaf. The node has more than one leaf.
LeafRange child_with(LeafRange node, std::int64_t leaf) {
  const std::int64_t mid = middle(node);
  return leaf < mid ? LeafRange{node.lo, mid} : LeafRange{mid, node.hi};
}

}  // namespace

LeafRange part_of_leaves(std::int64_t leaves, int parts, int index) {
  check(parts > 0 && leaves % parts == 0, "the parts divide the leaves");
  check(index >= 0 && index < parts, "the index of a part is below the number of parts");
  const std::int64_t each = leaves / parts;
  return {index * each, (index + 1) * each};
}

bool is_node(LeafRange range, std::int64_t leaves) {
  if (range.lo < 0 || range.lo >= range.hi || range.hi > leaves) {
    return false;
  }
  LeafRange node{0, leaves};
  while (node.count() > range.count()) {
    node = child_with(node, range.lo);
  }
  return node == range;
}

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

// The right half is never the smaller one, and is summed while the left half's sum is on the stack.
int stack_height(std::int64_t leaves) {
  check(leaves > 0, "a tree has leaves");
  int height = 1;
  for (; leaves > 1; leaves -= leaves / 2) {
    ++height;
  }
  return height;
}

}  // namespace trireme
