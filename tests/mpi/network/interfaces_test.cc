#include "mpi/network/interfaces.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sched.h>

#include "src/base/error.h"
#include "tests/mpi/network/netlink_bytes.h"

namespace trireme {
namespace {
using namespace std::string_literals;

std::string output_of(const char* command) {
  std::string text;
  std::FILE* const pipe = ::popen(command, "r");
  std::array<char, 4096> block{};
  for (std::size_t bytes = 0; (bytes = std::fread(block.data(), 1, block.size(), pipe)) > 0;) {
    text.append(block.data(), bytes);
  }
  EXPECT_EQ(::pclose(pipe), 0) << command;
  return text;
}

// Compares every interface, kind and address with what iproute2 reports here.
void compare_with_ip() {
  const nlohmann::json listed = nlohmann::json::parse(output_of("ip -j -d address"));
  const std::vector<NetworkInterface> found = list_interfaces();
  ASSERT_EQ(found.size(), listed.size());
  for (const nlohmann::json& each : listed) {
    const auto name = each.at("ifname").get<std::string>();
    const auto own =
        std::find_if(found.begin(), found.end(), [&](const auto& one) { return one.name == name; });
    ASSERT_NE(own, found.end()) << name;
    EXPECT_EQ(own->index, each.at("ifindex").get<int>());
    EXPECT_EQ(own->kind, each.value("/linkinfo/info_kind"_json_pointer, "")) << name;
    const auto flags = each.at("flags").get<std::set<std::string>>();
    EXPECT_EQ(own->up, flags.contains("UP")) << name;
    EXPECT_EQ(own->loopback, flags.contains("LOOPBACK")) << name;
    std::set<std::string> addresses;
    for (const nlohmann::json& one : each.at("addr_info")) {
      addresses.insert(one.at("local").get<std::string>());
    }
    std::set<std::string> own_addresses;
    for (const IpAddress& one : own->addresses) {
      own_addresses.insert(one.text());
    }
    EXPECT_EQ(own_addresses, addresses) << name;
  }
}

// Runs the work in a network namespace of its own, in which the shell command has been run. Returns
// false if this user may not make one.
template <class Work>
bool in_own_network(const char* command, Work work) {
  bool made = false;
  std::thread([&] {
    made = ::unshare(CLONE_NEWNET) == 0;
    if (made) {
      ASSERT_EQ(std::system(command), 0) << command;
      work();
    }
  }).join();
  return made;
}

TEST(Interfaces, AreThoseOfThisMachine) { compare_with_ip(); }

TEST(Interfaces, AreThoseOfAMadeUpHost) {
  const bool made = in_own_network(
      "ip link set lo up && ip link add wg0 type veth peer name far && ip link set wg0 up && "
      "ip addr add 10.8.0.1/24 dev wg0 && ip addr add fd00:8::1/64 dev wg0 && "
      "ip addr add 10.9.0.1 peer 10.9.0.2/32 dev wg0 && ip link add br0 type bridge",
      compare_with_ip);
  if (!made) {
    GTEST_SKIP() << "needs to make a network namespace: run as root with CAP_SYS_ADMIN";
  }
}

TEST(Interfaces, RoutesAreThoseOfTheKernel) {
  const bool made = in_own_network(
      "ip link set lo up && ip link add va type veth peer name vb && ip link add vc type veth "
      "peer name vd && for i in va vb vc vd; do ip link set $i up; done && ip addr add 10.1.0.1/24 "
      "dev va && "
      "ip addr add 10.2.0.1/24 dev vc && ip route add 10.3.0.0/24 via 10.2.0.9 && "
      "ip route add blackhole 10.4.0.0/24 && ip addr add fd00:1::1/64 dev va nodad",
      [] {
        std::map<std::string, int> index;
        for (const NetworkInterface& each : list_interfaces()) {
          index[each.name] = each.index;
        }
        const auto to = [](const char* there, const char* here) {
          return route_to(parse_address(there).value(), parse_address(here).value());
        };
        EXPECT_EQ(to("10.1.0.7", "10.1.0.1")->interface, index["va"]);
        EXPECT_EQ(to("10.2.0.7", "0.0.0.0")->interface, index["vc"]);
        EXPECT_EQ(to("10.3.0.7", "10.2.0.1")->interface, index["vc"]);
        // The address of another interface does not change the way.
        EXPECT_EQ(to("10.3.0.7", "10.1.0.1")->interface, index["vc"]);
        EXPECT_EQ(to("fd00:1::7", "fd00:1::1")->interface, index["va"]);
        EXPECT_FALSE(to("10.1.0.7", "10.1.0.1")->local);
        EXPECT_TRUE(to("10.2.0.1", "10.1.0.1")->local);
        EXPECT_FALSE(to("10.4.0.7", "10.1.0.1"));
        EXPECT_FALSE(to("203.0.113.7", "10.1.0.1"));
      });
  if (!made) {
    GTEST_SKIP() << "needs to make a network namespace: run as root with CAP_SYS_ADMIN";
  }
}

TEST(NetlinkMessages, AreRead) {
  NetlinkBytes messages = link_message(7, "wg0\0"s, "wireguard\0"s, IFF_UP);
  add(messages, link_message(1, "lo\0"s, "", IFF_UP | IFF_LOOPBACK));
  std::vector<NetworkInterface> found;
  read_links(messages, found);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].text(), "wg0 (wireguard)");
  EXPECT_TRUE(found[0].up && !found[0].loopback);
  EXPECT_TRUE(found[1].loopback && found[1].kind.empty());

  ifaddrmsg fixed{};
  fixed.ifa_index = 7;
  read_addresses(message(RTM_NEWADDR, fixed,
                         {attribute(IFA_ADDRESS, raw("\x0a\x08\x00\x02"s)),
                          attribute(IFA_LOCAL, raw("\x0a\x08\x00\x01"s)),
                          attribute(IFA_ADDRESS, raw("\x0a\x08\x00\x03"s))}),
                 found);
  ASSERT_EQ(found[0].addresses.size(), 1U);
  EXPECT_EQ(found[0].addresses[0].text(), "10.8.0.1");
}

TEST(NetlinkMessages, EveryCutAndEveryLengthIsReadOrRefused) {
  const NetlinkBytes whole = link_message(7, "wg0\0"s, "wireguard\0"s, IFF_UP);
  for (std::size_t bytes = 1; bytes < whole.size(); ++bytes) {
    std::vector<NetworkInterface> found;
    EXPECT_THROW(read_links(std::span(whole).first(bytes), found), DataError) << bytes;
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      NetlinkBytes changed = whole;
      changed[at] = static_cast<std::byte>(value);
      std::vector<NetworkInterface> found;
      try {
        read_links(changed, found);
        read_addresses(changed, found);
        (void)read_route(changed);
      } catch (const DataError&) {
        continue;
      }
    }
  }
}

}  // namespace
}  // namespace trireme
