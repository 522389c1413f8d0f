// TransportRule says over what the ranks of a run may exchange data (security.transport), and
// decides whether what a rank uses obeys it. Except for observe_transport(), pure functions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mpi/launch_environment.h"
#include "mpi/network/address.h"
#include "mpi/network/interfaces.h"

namespace trireme {

enum class TransportKind {
  any,       // nothing is demanded
  isolated,  // networks that the site has set apart for this
  tunnel,    // an interface whose driver encrypts: WireGuard, or an XFRM interface (IPsec)
};

struct TransportRule {
  TransportKind kind = TransportKind::any;
  std::string interface;          // of a tunnel
  std::vector<Network> networks;  // that are isolated

  // Returns "any", "isolated" or "tunnel:wg0".
  std::string text() const;
};

// Throws ConfigError for another word, for the name of no interface, for networks that
// parse_network() does not read, and for isolated without networks.
TransportRule parse_transport_rule(std::string_view word, const std::vector<std::string>& networks);

// RankConnection is a socket of this rank that is connected to another host.
struct RankConnection {
  IpAddress remote;
  std::optional<int> interface;  // index, over which its packets leave; nothing without a route
  friend auto operator<=>(const RankConnection&, const RankConnection&) = default;
};

// TransportUse is what a rank has open towards the network.
struct TransportUse {
  std::vector<NetworkInterface> interfaces;  // of its host
  std::vector<RankConnection> connections;
  int local_connections = 0;      // over the loopback, or to addresses of this host
  std::vector<std::string> rdma;  // devices and links that bypass the kernel, as text
};

// Looks at this process. Throws IoError and DataError, as the functions of interfaces.h and
// sockets.h do.
TransportUse observe_transport();

// Returns the variables of the environment that choose RDMA, such as "UCX_TLS=rc_x,self".
std::vector<std::string> rdma_settings(const EnvironmentLookup& environment);

// Returns a sentence, without a full stop, for each way in which the use breaks the rule; empty if
// it obeys. between_hosts: whether the ranks are on several hosts; only then does a host need its
// tunnel. settings: what rdma_settings() has returned.
std::vector<std::string> breaches(const TransportRule& rule, const TransportUse& use,
                                  const std::vector<std::string>& settings, bool between_hosts);

// Returns what to set so that transports use what the rule allows.
std::string transport_advice(const TransportRule& rule);

}  // namespace trireme
