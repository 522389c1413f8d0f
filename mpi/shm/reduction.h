// all_reduce and reduce_scatter in shared memory (shm_algorithms.h): as the functions of
// Communicator of the same name. Rules of ShmGroup.
#pragma once

#include "mpi/communicator.h"
#include "mpi/shm/group.h"

namespace trireme {

void shm_all_reduce(ShmGroup& group, Exchange& exchange, const View& data, ReduceOp op);
void shm_reduce_scatter(ShmGroup& group, Exchange& exchange, const View& data, ReduceOp op);

}  // namespace trireme
