// The transport of ranks on one host that share memory: messages by outbox.h and inbox.h,
// collective operations by shm_algorithms.h. Its memory() is read by peers in place; it lives as
// long as any communicator of the world.
#pragma once

#include <memory>
#include <vector>

#include "mpi/collective/transport.h"
#include "mpi/shm/node.h"

namespace trireme {

// Collective over host_group: all its ranks, which are of one host. host_group is not needed
// afterwards. The same ConfigError on every rank where memory can't be shared.
std::unique_ptr<Transport> make_shm_transport(Communicator& host_group,
                                              const ShmOptions& options = {});

}  // namespace trireme
