// IpAddress is an address of IPv4 or IPv6, and Network a range of them as in "10.0.0.0/8". Plain
// values and pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace trireme {

struct IpAddress {
  // An IPv4 address is stored as IPv6 writes it, ::ffff:a.b.c.d, so that sockets of IPv6 that are
  // connected over IPv4 have the same address.
  std::array<std::uint8_t, 16> bytes{};

  // bytes: 4 or 16, in network order. Returns nothing for another number.
  static std::optional<IpAddress> of_bytes(std::span<const std::byte> bytes);
  bool is_v4() const;
  bool is_loopback() const;    // 127.0.0.0/8 or ::1
  bool is_link_local() const;  // fe80::/10, which means something on one interface only
  bool is_any() const;         // 0.0.0.0 or ::, which stands for every address of a host
  std::string text() const;
  friend auto operator<=>(const IpAddress&, const IpAddress&) = default;
};

std::optional<IpAddress> parse_address(std::string_view text);

struct Network {
  IpAddress base;
  int prefix = 128;  // bits of the form above: 96 more than written for IPv4

  bool contains(const IpAddress& address) const;
  std::string text() const;
  friend bool operator==(const Network&, const Network&) = default;
};

// Reads "10.77.0.0/24", "fd00::/8" or a single address. Returns nothing for any other text, and for
// a network with bits beyond its prefix, such as 10.77.0.1/24.
std::optional<Network> parse_network(std::string_view text);

}  // namespace trireme
