// Writes the links between simulated devices to the log of NCCL's stand-in, as NCCL 2.28 does.
// TRIREME_SIM_LINKS names one kind of link for all pairs of devices, and others for single devices:
//
//   nvlink | nvls | pcie | shm | ib | ib-host | roce | socket        (default: nvlink)
//   ib,1:socket,2:shm       device 1 reaches the others over sockets, device 2 over shared memory
//
// nvls: NVLink whose switches add; ib-host: InfiniBand without GPUDirect RDMA. Data moves in the
// same way whatever the link. A wrong value ends the process at its start with exit code 2.
#pragma once

#include <string>

namespace sim {

// LinkedRank is a rank of a communicator and its device.
struct LinkedRank {
  int rank = 0;
  int device = 0;
};

// Log what NCCL logs when it starts a communicator of `ranks` ranks, and when it connects a rank
// with another in the direction of the data. The receiver logs network links once more.
void log_communicator(int rank, int ranks, int device);
void log_channel(const LinkedRank& from, const LinkedRank& to, bool is_receiver, int connection);

}  // namespace sim
