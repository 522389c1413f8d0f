// Gives each rank of a run its device, and refuses jobs whose devices do not fit together.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "mpi/communicator.h"
#include "mpi/topology.h"
#include "src/train/run/rank_device.h"
#include "src/train/run/run_config.h"

namespace trireme {

// Returns the device of each rank, in rank order. Each rank of a host gets a GPU of its own among
// those that its launcher lets it see (CUDA_VISIBLE_DEVICES, srun --gpu-bind): one next to its
// cores where that is known (assign_devices), otherwise the one with its number on the host. Makes
// this process a user of its GPU. warn: called on rank 0. in_use: called on rank 0 for each rank
// whose GPU other processes use already; may be empty. Collective. Throws on all ranks alike:
//
//   ConfigError  no rank has a device; the program holds no code for one; ranks share one, have a
//                MIG slice or run under MPS without train.share_device; some compute on GPUs and
//                others on the CPU; unlike GPUs or versions of NCCL
//   RankFault    some ranks lack a device that others have, or cannot use theirs; of the kind
//                "memory" if the reason is that their devices have no memory left
std::vector<RankDevice> agree_on_devices(const RunConfig& config,
                                         const std::vector<RankPlace>& places, Communicator& world,
                                         const std::function<void(const std::string&)>& warn,
                                         const std::function<void(const std::string&)>& in_use);

}  // namespace trireme
