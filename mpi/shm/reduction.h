// Implements all_reduce and reduce_scatter in shared memory (shm_algorithms.h), like the functions
// of Communicator of the same names. Thread rule: group.h.
#pragma once

#include <vector>

#include "mpi/communicator.h"
#include "mpi/shm/group.h"

namespace trireme {

// Holds one address per rank. Kept between operations, so that these do not allocate.
struct Addresses {
  std::vector<const void*> from;
  std::vector<void*> into;
};

// Reduces from `from` into `into`, which may be the same memory.
void shm_all_reduce(ShmGroup& group, Addresses& addresses, Exchange& exchange,
                    const ConstView& from, const View& into, ReduceOp op);
void shm_reduce_scatter(ShmGroup& group, Addresses& addresses, Exchange& exchange, const View& data,
                        ReduceOp op);

}  // namespace trireme
