// Implements recursive halving and doubling among 2^k ranks (collectives.h). Step b pairs ranks
// that differ in bit b; bit 0 comes first, so that sums follow the canonical tree. The data is
// divided into one block per rank; after step b, a rank holds the partial sums of the blocks of all
// ranks that have the same bits 0..b. Called by the thread that drives the operation.
#pragma once

#include "mpi/collective/collectives.h"

namespace trireme {

// Says which block is a rank's own.
enum class BlockOrder {
  by_rank,      // block r, as for reduce_scatter and all_gather; all blocks are equal
  bit_reversed  // block reverse_bits(r): each step exchanges one range of the data
};

// Sets this rank's own block to the reduction over all ranks; the other blocks are undefined
// afterwards.
void halve(Exchange& exchange, Scratch& scratch, const View& data, ReduceOp op, BlockOrder order);
// Copies every rank's own block to all ranks.
void double_back(Exchange& exchange, const View& data, BlockOrder order);

}  // namespace trireme
