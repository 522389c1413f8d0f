// Reads NCCL's log (NCCL_DEBUG=INFO, subsystems INIT, NET and GRAPH). NCCL has no function that
// says how it connects ranks; its log does, in lines whose form has been the same from 2.18 to
// 2.30. Each begins with "HOST:PID:TID [DEVICE] NCCL INFO ", and since 2.27 a time may precede it:
//
//   NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>
//   Pattern 4, crossNic 0, nChannels 16, bw 20.0/20.0, type NVL/PXN, sameChannels 1
//   16 coll channels, 16 collnet channels, 16 nvls channels, 16 p2p channels, ...
//   Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM            or P2P/IPC, P2P/direct pointer, ...
//   Channel 00 : 0[0] -> 1[1] via SHM/direct/direct
//   Channel 00/0 : 7[7] -> 8[0] [send] via NET/IB/0/GDRDMA       or NET/Socket/0, NET/IB/2(3), ...
//
// The ranks are numbers in the communicator. Pattern 4 is the ring; its first type is the longest
// path between two GPUs of one host. All other lines except NCCL's warnings are ignored.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "mpi/links/link.h"

namespace trireme {

// NcclConnections is what a part of the log says about one communicator.
struct NcclConnections {
  std::vector<Link> links;            // sorted, each once
  int nvls_channels = 0;              // channels that add in the switches of NVLink
  std::vector<std::string> warnings;  // at most kMostWarnings
};

class NcclLogParser {
 public:
  static constexpr std::size_t kMostWarnings = 20;

  // Accepts any bytes. The network adapters of an earlier part of the log remain known.
  NcclConnections parse(std::string_view text);

 private:
  void read_ports(std::string_view text);
  LinkKind network_kind(std::string_view transport) const;

  std::map<int, LinkKind> ports_;  // by the number of NCCL's network device
};

}  // namespace trireme
