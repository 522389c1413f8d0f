// The canonical halving tree over the ranks 0..n-1 (communicator.h) as a communication pattern: the
// first rank of a node stands for it; the first rank of its right half is that rank's child. Works
// for every n, a segment at a time, so that all levels are busy at once.
#pragma once

#include "mpi/collective/collectives.h"

namespace trireme {

struct TreePlace {
  int parent = -1;            // none for the first rank
  std::vector<int> children;  // the largest subtree first
};
TreePlace place_in_tree(int rank, int size);

// Rank 0 ends with the result in tree order; the others' data is undefined.
void reduce_up(Exchange& exchange, Scratch& scratch, const View& data, ReduceOp op);
// Rank root's data reaches all; the tree is turned so that root is its first rank.
void send_down(Exchange& exchange, const View& data, int root);

}  // namespace trireme
