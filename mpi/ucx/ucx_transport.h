// The UCX transport: UCP's tag-matched messages straight between the ranks, over RDMA where the
// fabric has it, else over TCP: UCX_TLS and UCX_NET_DEVICES choose, as for every program that uses
// UCX. Large messages (UCX_RNDV_THRESH) are moved by UCX's rendezvous from buffer to buffer, by
// RMA, where the fabric has it; over TCP they stream (ucx_fabric.h).
//
// A group has a worker of its own; a lock lets its driver and a split share it. A peer whose
// connection breaks fails what waits for it, and check_peers(): ucx_fabric.h says when. That needs
// UCX's error handling, which its transports inside a host lack (1.13: posix, sysv, cma), so ranks
// of one host talk over TCP, too: comm.backend shm and hierarchical are faster there.
#pragma once

#include <memory>
#include <vector>

#include "mpi/collective/transport.h"

namespace trireme {

class Communicator;

// The ranks of `group`, over UCX.
// Collective over `group`, which exchanges the addresses and is not needed afterwards. ConfigError
// on every rank, with what to set, where the fabric that was asked for is not there on one of them,
// or where trireme was built without UCX.
std::unique_ptr<Transport> make_ucx_transport(Communicator& group);

// ConfigError, with what to set, where nothing of what UCX_TLS and UCX_NET_DEVICES name is here.
// For who is about to let MPI use UCX; nothing where trireme was built without it.
void check_ucx_here();

}  // namespace trireme
