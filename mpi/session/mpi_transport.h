// The MPI transport: nonblocking point-to-point calls on a private communicator, polled by the
// progress thread (MPI_THREAD_MULTIPLE). A rank that MPI lost is MPI's launcher's to notice; one
// that merely does not come runs into the deadline.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "mpi/communicator.h"
#include "mpi/watch/group_watch.h"

namespace trireme {

// All ranks of MPI_COMM_WORLD; hosts by rank. MPI is running and outlives the communicator, as does
// what `watch` points to. Every rank calls it.
std::unique_ptr<Communicator> make_mpi_world(std::vector<std::string> hosts,
                                             const Watch& watch = {});

}  // namespace trireme
