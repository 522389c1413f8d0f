// The transports and devices that UCX finds on this host, and whether what the user asked for is
// among them.
#pragma once

#include <string>
#include <vector>

namespace trireme {

struct UcxDevice {
  std::string transport;  // "tcp", "rc_mlx5"
  std::string name;       // "eth0", "mlx5_0:1"
  bool network = false;
};

// Whatever UCX_TLS and UCX_NET_DEVICES say.
std::vector<UcxDevice> ucx_devices();
// "tcp on eth0 and lo; posix on memory": by transport.
std::string describe(const std::vector<UcxDevice>& devices);
// Whether UCX_NET_DEVICES=`setting` names devices and this host has none of them. "all" and lists
// of exclusions ("^eth0") name none.
bool names_absent_devices(const std::string& setting, const std::vector<UcxDevice>& devices);

// Why UCX can't be used as it is configured, and what to set; `what` happened.
std::string fabric_fault(const std::string& what, const std::vector<UcxDevice>& devices);

}  // namespace trireme
