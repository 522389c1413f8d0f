// The MPI transport: nonblocking point-to-point calls on a private communicator, polled by the
// progress thread (MPI_THREAD_MULTIPLE). A rank that MPI lost is MPI's launcher's to notice; one
// that merely does not come runs into the deadline.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "mpi/collective/transport.h"

namespace trireme {

// All ranks of MPI_COMM_WORLD; hosts by rank. MPI is running and outlives the transport. Every rank
// calls it.
std::unique_ptr<Transport> make_mpi_transport(const std::vector<std::string>& hosts);

}  // namespace trireme
