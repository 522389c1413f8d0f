// The MPI transport uses nonblocking point-to-point calls on a private communicator, polled by the
// thread that drives the queue (MPI_THREAD_MULTIPLE). It does not notice lost ranks: MPI's launcher
// does that, and a rank that merely does not come runs into the deadline. Thread rule: transport.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "mpi/collective/transport.h"

namespace trireme {

// Connects all ranks of MPI_COMM_WORLD; hosts[r] is the host of rank r. MPI is running and outlives
// the transport. Every rank calls it.
std::unique_ptr<Transport> make_mpi_transport(const std::vector<std::string>& hosts);

}  // namespace trireme
