#include "mpi/network/address.h"

#include <algorithm>
#include <charconv>

#include <arpa/inet.h>
#include <fmt/core.h>

namespace trireme {
namespace {

constexpr int kBits = 128;
constexpr int kV4Bits = 32;
constexpr std::array<std::uint8_t, 12> kV4Prefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

// Returns whether the first `bits` bits are equal.
bool agree(const IpAddress& a, const IpAddress& b, int bits) {
  for (int i = 0; i < bits; i += 8) {
    const auto mask = static_cast<std::uint8_t>(bits - i >= 8 ? 0xff : 0xff << (8 - (bits - i)));
    const auto at = static_cast<std::size_t>(i / 8);
    if (((a.bytes[at] ^ b.bytes[at]) & mask) != 0) {
      return false;
    }
  }
  return true;
}

// Returns the address with all bits after the first `bits` cleared.
IpAddress cut(IpAddress address, int bits) {
  for (int i = bits; i < kBits; ++i) {
    auto& byte = address.bytes[static_cast<std::size_t>(i / 8)];
    byte = static_cast<std::uint8_t>(byte & ~(0x80 >> (i % 8)));
  }
  return address;
}

}  // namespace

std::optional<IpAddress> IpAddress::of_bytes(std::span<const std::byte> bytes) {
  IpAddress address;
  if (bytes.size() != 4 && bytes.size() != 16) {
    return std::nullopt;
  }
  const std::size_t skipped = 16 - bytes.size();
  std::copy_n(kV4Prefix.begin(), skipped, address.bytes.begin());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    address.bytes[skipped + i] = std::to_integer<std::uint8_t>(bytes[i]);
  }
  return address;
}

bool IpAddress::is_v4() const {
  return std::equal(kV4Prefix.begin(), kV4Prefix.end(), bytes.begin());
}

bool IpAddress::is_loopback() const {
  static const IpAddress v6 = parse_address("::1").value();
  return *this == v6 || (is_v4() && bytes[12] == 127);
}

bool IpAddress::is_link_local() const { return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80; }

bool IpAddress::is_any() const {
  return *this == IpAddress{} || (is_v4() && std::all_of(bytes.begin() + 12, bytes.end(),
                                                         [](auto byte) { return byte == 0; }));
}

std::string IpAddress::text() const {
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  const bool v4 = is_v4();
  const void* const from = v4 ? bytes.data() + kV4Prefix.size() : bytes.data();
  return ::inet_ntop(v4 ? AF_INET : AF_INET6, from, buffer.data(), buffer.size());
}

std::optional<IpAddress> parse_address(std::string_view text) {
  const std::string owned(text);
  std::array<std::byte, 16> bytes{};
  if (owned.find('\0') != std::string::npos) {
    return std::nullopt;
  }
  if (::inet_pton(AF_INET, owned.c_str(), bytes.data()) == 1) {
    return IpAddress::of_bytes(std::span(bytes).first(4));
  }
  if (::inet_pton(AF_INET6, owned.c_str(), bytes.data()) == 1) {
    return IpAddress::of_bytes(bytes);
  }
  return std::nullopt;
}

bool Network::contains(const IpAddress& address) const { return agree(base, address, prefix); }

std::string Network::text() const {
  return fmt::format("{}/{}", base.text(), base.is_v4() ? prefix - (kBits - kV4Bits) : prefix);
}

std::optional<Network> parse_network(std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::optional<IpAddress> base = parse_address(text.substr(0, slash));
  if (!base) {
    return std::nullopt;
  }
  // ::ffff:10.0.0.0/104 would be the IPv4 network 10.0.0.0/8, in a form that nobody needs.
  const bool v4 = base->is_v4();
  if (v4 && text.find(':') != std::string_view::npos) {
    return std::nullopt;
  }
  const int most = v4 ? kV4Bits : kBits;
  int prefix = most;
  if (slash != std::string_view::npos) {
    const std::string_view digits = text.substr(slash + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), prefix);
    if (error != std::errc() || end != digits.data() + digits.size() || prefix < 0 ||
        prefix > most) {
      return std::nullopt;
    }
  }
  const Network network{*base, prefix + kBits - most};
  return cut(*base, network.prefix) == *base ? std::optional(network) : std::nullopt;
}

}  // namespace trireme
