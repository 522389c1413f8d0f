// Lists what this process has open towards the network: its sockets of TCP and UDP, and devices
// that send without the kernel (RDMA). Reads /proc only; the sockets are those of the calling
// thread's network namespace. The parser is a pure function.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mpi/network/address.h"

namespace trireme {

struct SocketEntry {
  IpAddress local;
  int local_port = 0;
  IpAddress remote;
  int remote_port = 0;  // 0: not connected
  std::uint64_t inode = 0;

  bool is_connected() const { return remote_port != 0; }
};

// Reads the text of /proc/net/tcp, tcp6, udp or udp6, which all have the form
//
//   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
//    0: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 51234
//
// Addresses are words of 32 bits in the byte order of the machine. Throws DataError for a line of
// another form, since a proof must not skip what it does not understand.
std::vector<SocketEntry> parse_sockets(std::string_view table);

struct OpenEndpoints {
  std::vector<SocketEntry> sockets;  // of this process
  std::vector<std::string> rdma;     // device files such as /dev/infiniband/uverbs0, each once
};
// Throws IoError if /proc cannot be read.
OpenEndpoints own_endpoints();

// Returns whether a device file sends over the network past the kernel.
bool is_rdma_device(std::string_view path);

}  // namespace trireme
