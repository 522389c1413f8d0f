// Lists the transports and devices that UCX finds on this host, and checks the user's settings
// against them. Any thread.
#pragma once

#include <string>
#include <vector>

namespace trireme {

struct UcxDevice {
  std::string transport;  // "tcp", "rc_mlx5"
  std::string name;       // "eth0", "mlx5_0:1"
  bool network = false;
};

// Returns all devices, regardless of UCX_TLS and UCX_NET_DEVICES.
std::vector<UcxDevice> ucx_devices();
// Returns the devices by transport: "tcp on eth0 lo; posix on memory".
std::string describe(const std::vector<UcxDevice>& devices);
// Returns whether UCX_NET_DEVICES=`setting` names devices of which this host has none. "all" and
// lists of exclusions ("^eth0") name none.
bool names_absent_devices(const std::string& setting, const std::vector<UcxDevice>& devices);

// Returns the message for the fault `what`: what is configured, what this host has, and what to
// set.
std::string fabric_fault(const std::string& what, const std::vector<UcxDevice>& devices);

}  // namespace trireme
