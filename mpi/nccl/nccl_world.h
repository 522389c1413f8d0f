// Connects ranks over NCCL, for tensors in the memory of CUDA devices. A program without CUDA is
// linked with mpi/nccl/absent, where this throws ConfigError.
#pragma once

#include <memory>
#include <string>

#include "mpi/communicator.h"
#include "mpi/watch/group_watch.h"

namespace trireme {

// Connects the ranks of `control`, of which each computes on the CUDA device `device` of its host.
// The communicator takes over `control` for its messages of the host: the ids of new groups and the
// choices of split(). The objects that `watch` refers to outlive it and all groups split from it.
// Collective. Throws CommError if NCCL cannot connect the ranks, and Hang at the deadline.
std::unique_ptr<Communicator> make_nccl_world(std::unique_ptr<Communicator> control, Device device,
                                              const Watch& watch);
// Returns, for example, "NCCL 2.28.9".
std::string nccl_version();

}  // namespace trireme
