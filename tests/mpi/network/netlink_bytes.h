// Builds messages as the kernel sends them over rtnetlink.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include "mpi/network/interfaces.h"

namespace trireme {

inline void add(NetlinkBytes& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
  to.resize((to.size() + 3) & ~std::size_t{3});
}

inline std::span<const std::byte> raw(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

inline NetlinkBytes attribute(int type, std::span<const std::byte> value) {
  rtattr header{};
  header.rta_len = static_cast<unsigned short>(sizeof header + value.size());
  header.rta_type = static_cast<unsigned short>(type);
  NetlinkBytes made;
  add(made, std::as_bytes(std::span(&header, 1)));
  add(made, value);
  return made;
}

template <class Fixed>
NetlinkBytes message(int type, const Fixed& fixed, const std::vector<NetlinkBytes>& attributes) {
  NetlinkBytes body;
  add(body, std::as_bytes(std::span(&fixed, 1)));
  for (const NetlinkBytes& each : attributes) {
    add(body, each);
  }
  nlmsghdr header{};
  header.nlmsg_len = static_cast<std::uint32_t>(sizeof header + body.size());
  header.nlmsg_type = static_cast<std::uint16_t>(type);
  NetlinkBytes made;
  add(made, std::as_bytes(std::span(&header, 1)));
  add(made, body);
  return made;
}

inline NetlinkBytes link_message(int index, std::string_view name, std::string_view kind,
                                 unsigned flags) {
  ifinfomsg info{};
  info.ifi_index = index;
  info.ifi_flags = flags;
  std::vector<NetlinkBytes> attributes = {attribute(IFLA_IFNAME, raw(name))};
  if (!kind.empty()) {
    attributes.push_back(attribute(IFLA_LINKINFO, attribute(IFLA_INFO_KIND, raw(kind))));
  }
  return message(RTM_NEWLINK, info, attributes);
}

}  // namespace trireme
