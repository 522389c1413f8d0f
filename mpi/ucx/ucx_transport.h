// The UCX transport sends UCP's tag-matched messages directly between the ranks, over RDMA if the
// fabric has it, else over TCP. UCX_TLS and UCX_NET_DEVICES select what to use, as for every
// program that uses UCX. On fabrics with RMA, UCX's rendezvous moves large messages
// (UCX_RNDV_THRESH) from buffer to buffer; over TCP they are streamed (ucx_fabric.h).
//
// Each group has a worker of its own; a lock lets its driver and a split share it. If the
// connection to a peer breaks, the operations that wait for it and check_peers() fail; ucx_fabric.h
// says how soon. This needs UCX's error handling, which its transports inside a host lack (1.13:
// posix, sysv, cma). Therefore ranks of one host also use TCP; comm.backend shm and hierarchical
// are faster there.
#pragma once

#include <memory>
#include <vector>

#include "mpi/collective/transport.h"

namespace trireme {

class Communicator;

// Connects the ranks of `group` over UCX. Collective over `group`, which exchanges the addresses
// and is not needed afterwards. Throws ConfigError on every rank, saying what to set, if one of
// them lacks the fabric that was requested or if trireme was built without UCX.
std::unique_ptr<Transport> make_ucx_transport(Communicator& group);

// Throws ConfigError, saying what to set, if this host has nothing of what UCX_TLS and
// UCX_NET_DEVICES name. To be called before MPI uses UCX. Does nothing if trireme was built without
// UCX.
void check_ucx_here();

}  // namespace trireme
