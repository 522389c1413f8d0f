#include "mpi/network/transport_rule.h"

#include <algorithm>
#include <array>
#include <map>
#include <sstream>

#include <fmt/ranges.h>
#include <net/if.h>

#include "mpi/network/sockets.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/base/units.h"

namespace trireme {
namespace {

constexpr std::string_view kTunnel = "tunnel:";
// Drivers that send nothing in plain: WireGuard has no such mode, and an XFRM interface drops what
// no IPsec state of its own covers.
constexpr std::array<std::string_view, 2> kEncryptingKinds = {"wireguard", "xfrm"};

const NetworkInterface* find_interface(const TransportUse& use, int index) {
  const auto found = std::find_if(use.interfaces.begin(), use.interfaces.end(),
                                  [&](const auto& each) { return each.index == index; });
  return found == use.interfaces.end() ? nullptr : &*found;
}

bool contains(const std::vector<Network>& networks, const IpAddress& address) {
  return std::any_of(networks.begin(), networks.end(),
                     [&](const Network& network) { return network.contains(address); });
}

std::string list(const std::vector<Network>& networks) {
  std::vector<std::string> texts;
  for (const Network& network : networks) {
    texts.push_back(network.text());
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

// Returns what is wrong with the tunnel of this host, or "".
std::string fault_of_tunnel(const std::string& name, const TransportUse& use) {
  const auto found = std::find_if(use.interfaces.begin(), use.interfaces.end(),
                                  [&](const auto& each) { return each.name == name; });
  if (found == use.interfaces.end()) {
    return fmt::format("this host has no interface {}", name);
  }
  if (std::find(kEncryptingKinds.begin(), kEncryptingKinds.end(), found->kind) ==
      kEncryptingKinds.end()) {
    return fmt::format("{} is {}, which does not encrypt: only interfaces of the kinds {} do", name,
                       found->kind.empty() ? "a device of the hardware"
                                           : fmt::format("of the kind {}", printable(found->kind)),
                       fmt::join(kEncryptingKinds, " and "));
  }
  return found->up ? "" : fmt::format("{} is down", name);
}

// Returns how a connection breaks the rule, or "".
std::string fault_of(const RankConnection& connection, const TransportRule& rule,
                     const TransportUse& use) {
  const NetworkInterface* const way =
      connection.interface ? find_interface(use, *connection.interface) : nullptr;
  if (way == nullptr) {
    return fmt::format("to {}, to which this host has no route", connection.remote.text());
  }
  if (rule.kind == TransportKind::tunnel) {
    return way->name == rule.interface ? ""
                                       : fmt::format("to {} over {} instead of {}",
                                                     connection.remote.text(),
                                                     printable(way->text()), rule.interface);
  }
  if (!contains(rule.networks, connection.remote)) {
    return fmt::format("to {}, which is in none of security.networks ({})",
                       connection.remote.text(), list(rule.networks));
  }
  const bool leaves_inside =
      std::any_of(way->addresses.begin(), way->addresses.end(),
                  [&](const IpAddress& own) { return contains(rule.networks, own); });
  return leaves_inside
             ? ""
             : fmt::format("to {} over {}, which has no address in security.networks ({})",
                           connection.remote.text(), printable(way->text()), list(rule.networks));
}

std::vector<std::string> words_of_list(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) {
    words.push_back(word);
  }
  return words;
}

// Returns the interface that owns the address; link-local addresses have no route of their own.
std::optional<int> owner_of(const IpAddress& address,
                            const std::vector<NetworkInterface>& interfaces) {
  for (const NetworkInterface& each : interfaces) {
    if (std::find(each.addresses.begin(), each.addresses.end(), address) != each.addresses.end()) {
      return each.index;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string TransportRule::text() const {
  switch (kind) {
    case TransportKind::any:
      return "any";
    case TransportKind::isolated:
      return "isolated";
    case TransportKind::tunnel:
      return std::string(kTunnel) + interface;
  }
  return "any";
}

TransportRule parse_transport_rule(std::string_view word,
                                   const std::vector<std::string>& networks) {
  TransportRule rule;
  for (const std::string& text : networks) {
    const std::optional<Network> network = parse_network(text);
    if (!network) {
      throw ConfigError(
          fmt::format("of security.networks, '{}' is no network: write it like 10.77.0.0/24 or "
                      "fd00:7::/64, with "
                      "zeros after the prefix",
                      printable(text)));
    }
    rule.networks.push_back(*network);
    const bool is_all = network->prefix == 0 || text.ends_with("/0");
    if (is_all && word == "isolated") {
      throw ConfigError(fmt::format(
          "of security.networks, '{}' holds every address, so that nothing is isolated: name the "
          "networks of the jobs, or set security.transport to any",
          printable(text)));
    }
  }
  if (word.starts_with(kTunnel)) {
    rule.kind = TransportKind::tunnel;
    rule.interface = word.substr(kTunnel.size());
    const bool is_name = !rule.interface.empty() && rule.interface.size() < IFNAMSIZ &&
                         rule.interface.find_first_of("/ \t\n:") == std::string::npos;
    if (!is_name) {
      throw ConfigError(
          fmt::format("'{}' names no interface: write it like tunnel:wg0", printable(word)));
    }
  } else if (word == "isolated") {
    rule.kind = TransportKind::isolated;
    if (rule.networks.empty()) {
      throw ConfigError(
          "isolated needs security.networks, the networks that the site has "
          "set apart for jobs, such as [10.77.0.0/24]");
    }
  } else if (word != "any") {
    throw ConfigError(
        fmt::format("'{}' is none of any, isolated and tunnel:INTERFACE", printable(word)));
  }
  return rule;
}

TransportUse observe_transport() {
  TransportUse use;
  use.interfaces = list_interfaces();
  OpenEndpoints open = own_endpoints();
  use.rdma = std::move(open.rdma);
  for (const SocketEntry& socket : open.sockets) {
    if (!socket.is_connected()) {
      continue;
    }
    if (socket.remote.is_loopback() || owner_of(socket.remote, use.interfaces)) {
      ++use.local_connections;
      continue;
    }
    RankConnection connection{socket.remote, std::nullopt};
    if (socket.remote.is_link_local()) {
      connection.interface = owner_of(socket.local, use.interfaces);
    } else if (const std::optional<Route> route = route_to(socket.remote, socket.local)) {
      connection.interface = route->interface;
    }
    use.connections.push_back(connection);
  }
  const bool is_new =  // an interface that has come meanwhile
      std::any_of(use.connections.begin(), use.connections.end(), [&](const auto& connection) {
        return connection.interface && find_interface(use, *connection.interface) == nullptr;
      });
  if (is_new) {
    use.interfaces = list_interfaces();
  }
  return use;
}

std::vector<std::string> rdma_settings(const EnvironmentLookup& environment) {
  // Starts of words in lists of transports that mean RDMA. A list that starts with ^ takes out.
  static const std::vector<std::pair<const char*, std::vector<std::string_view>>> kChoices = {
      {"UCX_TLS", {"rc", "dc", "ud", "ib", "srd", "gga"}},
      {"OMPI_MCA_btl", {"openib", "uct", "usnic", "ofi"}},
      {"OMPI_MCA_mtl", {"psm", "ofi", "portals4"}},
      {"NCCL_NET", {"IB", "ib"}},
  };
  std::vector<std::string> found;
  for (const auto& [name, starts] : kChoices) {
    const std::string value = environment(name).value_or("");
    const std::vector<std::string> words = words_of_list(value);
    const bool chooses = std::any_of(words.begin(), words.end(), [&starts = starts](const auto& w) {
      return std::any_of(starts.begin(), starts.end(),
                         [&](std::string_view start) { return w.starts_with(start); });
    });
    if (chooses && !value.starts_with('^')) {
      found.push_back(fmt::format("{}={}", name, printable(value)));
    }
  }
  return found;
}

std::vector<std::string> breaches(const TransportRule& rule, const TransportUse& use,
                                  const std::vector<std::string>& settings, bool between_hosts) {
  std::vector<std::string> found;
  if (rule.kind == TransportKind::any) {
    return found;
  }
  if (rule.kind == TransportKind::tunnel) {
    const std::string fault = between_hosts ? fault_of_tunnel(rule.interface, use) : "";
    if (!fault.empty()) {
      found.push_back(fault);
    }
    for (const std::string& device : use.rdma) {
      found.push_back(fmt::format("{} is in use: RDMA goes past {} and is not encrypted",
                                  printable(device), rule.interface));
    }
    for (const std::string& setting : between_hosts ? settings : std::vector<std::string>()) {
      found.push_back(fmt::format("{} chooses RDMA, which goes past {} and is not encrypted",
                                  setting, rule.interface));
    }
  }
  std::map<std::string, std::int64_t> counts;
  for (const RankConnection& connection : use.connections) {
    if (const std::string fault = fault_of(connection, rule, use); !fault.empty()) {
      ++counts[fault];
    }
  }
  for (const auto& [fault, count] : counts) {
    found.push_back(fmt::format("{} {}", counted(count, "connection"), fault));
  }
  return found;
}

std::string transport_advice(const TransportRule& rule) {
  const std::string where = rule.kind == TransportKind::tunnel ? rule.interface : "NETWORK";
  const std::string device = rule.kind == TransportKind::tunnel ? rule.interface : "INTERFACE";
  return fmt::format(
      "point the transports there (OMPI_MCA_btl_tcp_if_include={0}, UCX_NET_DEVICES={1}, "
      "NCCL_SOCKET_IFNAME={1}, UCX_TLS=tcp,self,sm), or ask the site for another "
      "security.transport",
      where, device);
}

}  // namespace trireme
