#include "mpi/network/interfaces.h"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include "mpi/network/netlink.h"
#include "src/base/error.h"

namespace trireme {
namespace {

using Bytes = std::span<const std::byte>;

// Precondition: the bytes hold a value.
template <class Value>
Value copied(Bytes bytes) {
  Value value{};
  std::memcpy(&value, bytes.data(), std::min(sizeof value, bytes.size()));
  return value;
}

template <class Value>
Bytes bytes_of(const Value& value) {
  return std::as_bytes(std::span(&value, 1));
}

// Text attributes end with a zero byte.
std::string text_in(Bytes bytes) {
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.substr(0, text.find('\0'));
}

NetworkInterface interface_of(Bytes fixed, Bytes attributes) {
  const auto info = copied<ifinfomsg>(fixed);
  NetworkInterface made;
  made.index = info.ifi_index;
  made.up = (info.ifi_flags & IFF_UP) != 0;
  made.loopback = (info.ifi_flags & IFF_LOOPBACK) != 0;
  for_each_attribute(attributes, [&](int type, Bytes value) {
    if (type == IFLA_IFNAME) {
      made.name = text_in(value);
    } else if (type == IFLA_LINKINFO) {
      for_each_attribute(value, [&](int nested, Bytes kind) {
        if (nested == IFLA_INFO_KIND) {
          made.kind = text_in(kind);
        }
      });
    }
  });
  return made;
}

void append(std::vector<std::byte>& to, int type, Bytes value) {
  rtattr header{};
  header.rta_len = static_cast<unsigned short>(sizeof header + value.size());
  header.rta_type = static_cast<unsigned short>(type);
  const Bytes head = bytes_of(header);
  to.insert(to.end(), head.begin(), head.end());
  to.insert(to.end(), value.begin(), value.end());
}

Bytes wire_bytes(const IpAddress& address) {
  const Bytes all = std::as_bytes(std::span(address.bytes));
  return address.is_v4() ? all.last(4) : all;
}

}  // namespace

std::string NetworkInterface::text() const {
  return kind.empty() ? name : fmt::format("{} ({})", name, kind);
}

void read_links(Bytes messages, std::vector<NetworkInterface>& to) {
  for_each_message(messages, sizeof(ifinfomsg), [&](int type, Bytes fixed, Bytes attributes) {
    if (type == RTM_NEWLINK) {
      to.push_back(interface_of(fixed, attributes));
    }
  });
}

// On a link from point to point, IFA_ADDRESS is the other end, and IFA_LOCAL the address of this
// host. IPv6 has only IFA_ADDRESS otherwise.
void read_addresses(Bytes messages, std::vector<NetworkInterface>& to) {
  for_each_message(messages, sizeof(ifaddrmsg), [&](int type, Bytes fixed, Bytes attributes) {
    if (type != RTM_NEWADDR) {
      return;
    }
    std::optional<IpAddress> address;
    bool is_local = false;
    for_each_attribute(attributes, [&](int kind, Bytes value) {
      if (kind == IFA_LOCAL || (kind == IFA_ADDRESS && !is_local)) {
        address = IpAddress::of_bytes(value);
        is_local = kind == IFA_LOCAL;
      }
    });
    const auto index = static_cast<int>(copied<ifaddrmsg>(fixed).ifa_index);
    const auto found =
        std::find_if(to.begin(), to.end(), [&](const auto& each) { return each.index == index; });
    if (address && found != to.end()) {
      found->addresses.push_back(*address);
    }
  });
}

std::optional<Route> read_route(Bytes messages) {
  std::optional<Route> route;
  for_each_message(messages, sizeof(rtmsg), [&](int type, Bytes fixed, Bytes attributes) {
    if (type != RTM_NEWROUTE || route) {
      return;
    }
    const auto kind = copied<rtmsg>(fixed).rtm_type;
    route = Route{.local = kind == RTN_LOCAL};
    for_each_attribute(attributes, [&](int attribute, Bytes value) {
      if (attribute == RTA_OIF) {
        route->interface = copied<int>(value);
      }
    });
    if (kind != RTN_LOCAL && kind != RTN_UNICAST) {
      route.reset();
    }
  });
  return route;
}

std::vector<NetworkInterface> list_interfaces() {
  std::vector<NetworkInterface> interfaces;
  const ifinfomsg all_links{};
  read_links(ask_kernel(RTM_GETLINK, NLM_F_DUMP, bytes_of(all_links)), interfaces);
  const ifaddrmsg all_addresses{};
  read_addresses(ask_kernel(RTM_GETADDR, NLM_F_DUMP, bytes_of(all_addresses)), interfaces);
  if (interfaces.empty()) {
    throw IoError("the kernel lists no network interface, not even the loopback");
  }
  return interfaces;
}

std::optional<Route> route_to(const IpAddress& to, const IpAddress& from) {
  rtmsg message{};
  message.rtm_family = to.is_v4() ? AF_INET : AF_INET6;
  message.rtm_dst_len = to.is_v4() ? 32 : 128;
  const bool has_source = !from.is_any() && from.is_v4() == to.is_v4();
  message.rtm_src_len = has_source ? message.rtm_dst_len : std::uint8_t{0};
  const Bytes fixed = bytes_of(message);
  std::vector<std::byte> body(fixed.begin(), fixed.end());
  append(body, RTA_DST, wire_bytes(to));
  if (has_source) {
    append(body, RTA_SRC, wire_bytes(from));
  }
  return read_route(ask_kernel(RTM_GETROUTE, 0, body));
}

}  // namespace trireme
