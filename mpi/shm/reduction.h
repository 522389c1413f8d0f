// all_reduce and reduce_scatter in shared memory (shm_algorithms.h): as the functions of
// Communicator of the same name. Rules of ShmGroup.
#pragma once

#include <vector>

#include "mpi/communicator.h"
#include "mpi/shm/group.h"

namespace trireme {

// One address a rank, kept between operations.
struct Addresses {
  std::vector<const void*> from;
  std::vector<void*> into;
};

// From `from` into `into`, which may be the same.
void shm_all_reduce(ShmGroup& group, Addresses& addresses, Exchange& exchange,
                    const ConstView& from, const View& into, ReduceOp op);
void shm_reduce_scatter(ShmGroup& group, Addresses& addresses, Exchange& exchange, const View& data,
                        ReduceOp op);

}  // namespace trireme
