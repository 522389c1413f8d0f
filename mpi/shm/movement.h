// Implements all_gather, all_to_all and broadcast in shared memory (shm_algorithms.h), like the
// functions of Communicator of the same names. Thread rule: group.h.
#pragma once

#include "mpi/collective/algorithms.h"
#include "mpi/shm/group.h"

namespace trireme {

void shm_all_gather(ShmGroup& group, Exchange& exchange, const View& data);
void shm_all_to_all(ShmGroup& group, Exchange& exchange, const AllToAll& blocks);
void shm_broadcast(ShmGroup& group, Exchange& exchange, const View& data, int root);

}  // namespace trireme
