// Defines where the canonical tree of sums divides a node (src/parallel/reduction_tree.h). All
// code that divides a node calls this function, in kernels of a device, too: another middle in
// one place would give other bits there.
#pragma once

namespace trireme {

// Returns the first leaf of the right half of the node [lo, hi), which has more than one leaf. The
// right half is never the smaller one.
template <class Integer>
constexpr Integer tree_middle(Integer lo, Integer hi) {
  return lo + (hi - lo) / 2;
}

}  // namespace trireme
