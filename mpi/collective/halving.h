// Recursive halving and doubling between 2^k ranks (collectives.h). Step b pairs ranks that differ
// in bit b; bit 0 comes first, so that sums follow the canonical tree. The data is cut into one
// block a rank; after step b a rank holds the partial sums of the blocks of all ranks that agree
// with it in bits 0..b.
#pragma once

#include "mpi/collective/collectives.h"

namespace trireme {

// Which block is a rank's own.
enum class BlockOrder {
  by_rank,      // block r, as reduce_scatter and all_gather promise; all blocks are equal
  bit_reversed  // block reverse_bits(r): what is exchanged in a step is one range of the data
};

// This rank's own block becomes the sum over all ranks; the others end undefined.
void halve(Exchange& exchange, Scratch& scratch, const View& data, ReduceOp op, BlockOrder order);
// Every rank's own block reaches all.
void double_back(Exchange& exchange, const View& data, BlockOrder order);

}  // namespace trireme
