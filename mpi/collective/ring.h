// Rings over any number of ranks: data is cut into one block a rank, and in each of n-1 steps every
// rank sends one block to the next rank and takes one from the rank before (Patarasuk and Yuan,
// 2009). A reduction that way adds in an order of its own for every block: SumOrder::any.
#pragma once

#include "mpi/collective/collectives.h"

namespace trireme {

// This rank's own block, by number, becomes the sum over all ranks; the others end undefined.
// Blocks are equal where the count allows it, else differ by one element. S (n-1)/n bytes each way.
void ring_reduce(Exchange& exchange, Scratch& scratch, const View& data, ReduceOp op);
// Every rank's own block reaches all. S (n-1)/n bytes each way.
void ring_gather(Exchange& exchange, const View& data);

}  // namespace trireme
