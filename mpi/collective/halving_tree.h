// Implements the canonical halving tree over the ranks 0..n-1 (communicator.h) as a communication
// pattern. The first rank of a node represents it, and the first rank of the node's right half is a
// child of that rank. Works for every n, and one segment at a time, so that all levels are busy at
// once. Called by the thread that drives the operation.
#pragma once

#include "mpi/collective/collectives.h"

namespace trireme {

struct TreePlace {
  int parent = -1;            // -1 for the first rank
  std::vector<int> children;  // sorted by the size of their subtrees, largest first
};
TreePlace place_in_tree(int rank, int size);

// Reduces the ranks' data onto rank 0 in tree order; the data of the others is undefined
// afterwards.
void reduce_up(Exchange& exchange, Scratch& scratch, const View& data, ReduceOp op);
// Copies rank root's data to all ranks, on the tree rotated such that root is its first rank.
void send_down(Exchange& exchange, const View& data, int root);

}  // namespace trireme
