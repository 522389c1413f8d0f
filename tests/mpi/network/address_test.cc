#include "mpi/network/address.h"

#include <array>

#include <gtest/gtest.h>

namespace trireme {
namespace {

IpAddress address(const char* text) { return parse_address(text).value(); }

TEST(IpAddress, ReadsAndWritesBothFamilies) {
  for (const char* text :
       {"10.77.0.1", "0.0.0.0", "255.255.255.255", "::", "::1", "fe80::1", "fd00:7::12"}) {
    ASSERT_TRUE(parse_address(text)) << text;
    EXPECT_EQ(address(text).text(), text);
  }
  EXPECT_EQ(address("::ffff:10.0.0.1"), address("10.0.0.1"));
  EXPECT_TRUE(address("127.8.9.1").is_loopback());
  EXPECT_TRUE(address("::ffff:127.0.0.1").is_loopback());
  EXPECT_TRUE(address("::1").is_loopback());
  EXPECT_FALSE(address("128.0.0.1").is_loopback());
  EXPECT_TRUE(address("fe80::1").is_link_local());
  EXPECT_TRUE(address("febf::1").is_link_local());
  EXPECT_FALSE(address("fec0::1").is_link_local());
  EXPECT_TRUE(address("0.0.0.0").is_any());
  EXPECT_TRUE(address("::").is_any());
  EXPECT_FALSE(address("::1").is_any());
}

TEST(IpAddress, RefusesOtherTexts) {
  for (const char* text : {"", "10.77.0", "10.77.0.1.2", "256.0.0.1", "1.2.3.4 ", "wg0",
                           "fe80::1%eth0", ":::", "10.0.0.1/8"}) {
    EXPECT_FALSE(parse_address(text)) << text;
  }
  EXPECT_FALSE(parse_address(std::string_view("10.0.0.1\0x", 10)));
  EXPECT_FALSE(IpAddress::of_bytes({}));
  const std::array<std::byte, 5> five{};
  EXPECT_FALSE(IpAddress::of_bytes(five));
}

TEST(Network, HoldsTheAddressesThatShareItsPrefix) {
  const Network lan = parse_network("10.77.0.0/23").value();
  EXPECT_EQ(lan.text(), "10.77.0.0/23");
  EXPECT_TRUE(lan.contains(address("10.77.0.0")));
  EXPECT_TRUE(lan.contains(address("10.77.1.255")));
  EXPECT_FALSE(lan.contains(address("10.77.2.0")));
  EXPECT_FALSE(lan.contains(address("10.76.255.255")));
  EXPECT_FALSE(lan.contains(address("::10.77.0.1")));
  const Network all = parse_network("0.0.0.0/0").value();
  EXPECT_TRUE(all.contains(address("203.0.113.7")));
  EXPECT_FALSE(all.contains(address("2001:db8::1")));
  const Network one = parse_network("10.0.0.1").value();
  EXPECT_EQ(one.text(), "10.0.0.1/32");
  EXPECT_TRUE(one.contains(address("10.0.0.1")));
  EXPECT_FALSE(one.contains(address("10.0.0.2")));
  const Network six = parse_network("fd00:7::/33").value();
  EXPECT_TRUE(six.contains(address("fd00:7:7fff::1")));
  EXPECT_FALSE(six.contains(address("fd00:7:8000::1")));
  EXPECT_EQ(parse_network("::/0").value().text(), "::/0");
}

TEST(Network, RefusesOtherTexts) {
  for (const char* text : {"", "/", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8x",
                           "10.0.0.0/ 8", "10.77.0.1/24", "fd00::1/64", "fd00::/129", "eth0",
                           "::ffff:10.0.0.0/104", "10.0.0.0/8/8"}) {
    EXPECT_FALSE(parse_network(text)) << text;
  }
}

}  // namespace
}  // namespace trireme
