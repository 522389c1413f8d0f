// Lists the network interfaces of this network namespace and asks where the kernel sends packets
// to, over rtnetlink(7), which needs no privilege. The parsers are pure functions of the kernel's
// messages.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mpi/network/address.h"

namespace trireme {

struct NetworkInterface {
  int index = 0;
  std::string name;  // which anyone with the right to make an interface may choose
  // The driver that the kernel reports (IFLA_INFO_KIND), such as "wireguard", "xfrm" or "veth".
  // Empty for a device of the hardware and for the loopback.
  std::string kind;
  bool up = false;
  bool loopback = false;
  std::vector<IpAddress> addresses;

  // Returns "wg0 (wireguard)", or "eth0" without a kind.
  std::string text() const;
};

// Throws IoError if the kernel refuses.
std::vector<NetworkInterface> list_interfaces();

// Route says where packets to an address go.
struct Route {
  bool local = false;  // to this host itself
  int interface = 0;   // index of the interface over which they leave
};

// Returns nothing if there is no route. from: an address of this host, or any.
std::optional<Route> route_to(const IpAddress& to, const IpAddress& from);

using NetlinkBytes = std::vector<std::byte>;  // whole messages, one after another

// Adds what RTM_NEWLINK messages describe. Throws DataError if lengths do not fit.
void read_links(std::span<const std::byte> messages, std::vector<NetworkInterface>& to);
// Adds the addresses in RTM_NEWADDR messages to the interfaces of their indices. Throws DataError.
void read_addresses(std::span<const std::byte> messages, std::vector<NetworkInterface>& to);
// Returns what the first RTM_NEWROUTE message says; nothing if there is none. Throws DataError.
std::optional<Route> read_route(std::span<const std::byte> messages);

}  // namespace trireme
