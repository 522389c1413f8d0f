// Connects ranks over NCCL, for tensors in the memory of CUDA devices. A program without CUDA is
// linked with mpi/nccl/absent, where this throws ConfigError.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "mpi/communicator.h"
#include "mpi/links/link_book.h"
#include "mpi/watch/group_watch.h"

namespace trireme {

struct NcclWorldOptions {
  Device device;  // the CUDA device on which this rank computes
  Watch watch;    // the objects that it refers to outlive the world and all groups split from it
  // Limits operations until set_deadline() is called, in each new group, too.
  std::chrono::duration<double> deadline = std::chrono::minutes(10);
  LinkBook* links = nullptr;  // notes how NCCL connects the groups; outlives them
};

// Connects the ranks of `control`, which the communicator takes over for its messages of the host:
// the ids of new groups and the choices of split(). Groups that are split from it connect all
// their ranks at once, so that nothing has to be connected during a step. Collective. Throws
// CommError if NCCL cannot connect the ranks, and Hang, which names those that are missing, at the
// deadline.
std::unique_ptr<Communicator> make_nccl_world(std::unique_ptr<Communicator> control,
                                              const NcclWorldOptions& options);
// Return estimates of the device memory that NCCL takes for a group of `ranks` ranks, and in
// addition for transfers between neighbours in the group (nccl_world.cc explains them).
std::int64_t nccl_group_bytes(int ranks);
std::int64_t nccl_transfer_bytes(int ranks);
// Returns the version of the library that is loaded, 22809 for 2.28.9; 0 without NCCL.
int nccl_version_code();
// Returns, for example, "NCCL 2.28.9".
std::string nccl_version();
// Returns the version that this program was built with, without loading the library; "no NCCL" if
// it was built without.
std::string nccl_build_version();
// Returns why this process cannot use NCCL and what to do; empty if it can. In a program without
// CUDA, says that it was built without.
std::string nccl_trouble();

}  // namespace trireme
