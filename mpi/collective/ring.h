// Implements rings over any number of ranks: the data is divided into one block per rank, and in
// each of n-1 steps every rank sends one block to the next rank and receives one from the previous
// rank (Patarasuk and Yuan, 2009). Such a reduction adds each block in a different order, as
// SumOrder::any allows. Called by the thread that drives the operation.
#pragma once

#include "mpi/collective/collectives.h"

namespace trireme {

// Sets block rank() to the reduction over all ranks; the other blocks are undefined afterwards. If
// the count is not a multiple of n, block sizes differ by one element. S (n-1)/n bytes each way.
void ring_reduce(Exchange& exchange, Scratch& scratch, const View& data, ReduceOp op);
// Copies block r of every rank r to all ranks. S (n-1)/n bytes each way.
void ring_gather(Exchange& exchange, const View& data);

}  // namespace trireme
