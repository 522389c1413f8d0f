// The shared-memory transport connects ranks on one host: outbox.h and inbox.h move messages,
// shm_algorithms.h runs collective operations. Peers read its memory() in place; that memory exists
// as long as any communicator of the world. Thread rule: transport.h.
#pragma once

#include <memory>
#include <vector>

#include "mpi/collective/transport.h"
#include "mpi/shm/node.h"

namespace trireme {

// Connects the ranks of host_group, which are all on one host. Collective over host_group, which is
// not needed afterwards. Throws the same ConfigError on every rank if memory can't be shared.
std::unique_ptr<Transport> make_shm_transport(Communicator& host_group,
                                              const ShmOptions& options = {});

}  // namespace trireme
