#include "mpi/network/transport_rule.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/mpi/network/netlink_bytes.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {
using namespace std::string_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kEth = 2;
constexpr int kTunnel = 3;

// A host with eth0 and a tunnel of the given kind, as the kernel would report it.
TransportUse host(const std::string& kind) {
  TransportUse use;
  NetlinkBytes messages = link_message(kEth, "eth0\0"s, "", IFF_UP);
  add(messages, link_message(kTunnel, "wg0\0"s, kind + '\0', IFF_UP));
  read_links(messages, use.interfaces);
  use.interfaces[0].addresses = {parse_address("10.77.0.1").value()};
  use.interfaces[1].addresses = {parse_address("10.8.0.1").value()};
  return use;
}

RankConnection to(const char* address, std::optional<int> interface) {
  return {parse_address(address).value(), interface};
}

TEST(TransportRule, ReadsItsThreeForms) {
  EXPECT_EQ(parse_transport_rule("any", {}).kind, TransportKind::any);
  const TransportRule tunnel = parse_transport_rule("tunnel:wg0", {});
  EXPECT_EQ(tunnel.kind, TransportKind::tunnel);
  EXPECT_EQ(tunnel.interface, "wg0");
  EXPECT_EQ(tunnel.text(), "tunnel:wg0");
  const TransportRule isolated = parse_transport_rule("isolated", {"10.77.0.0/24", "fd00::/8"});
  EXPECT_EQ(isolated.networks.size(), 2U);
  EXPECT_EQ(isolated.text(), "isolated");
}

TEST(TransportRule, RefusesOthersWithAdvice) {
  const auto refused = [](const char* word, const std::vector<std::string>& networks) {
    return message_of<ConfigError>([&] { (void)parse_transport_rule(word, networks); });
  };
  for (const char* word : {"", "Any", "tunnel", "encrypted", "isolated "}) {
    EXPECT_THAT(refused(word, {}), HasSubstr("any, isolated and tunnel:INTERFACE")) << word;
  }
  for (const char* word : {"tunnel:", "tunnel:a b", "tunnel:a/b", "tunnel:sixteen-letters-"}) {
    EXPECT_THAT(refused(word, {}), HasSubstr("names no interface")) << word;
  }
  EXPECT_THAT(refused("isolated", {}), HasSubstr("needs security.networks"));
  EXPECT_THAT(refused("isolated", {"10.77.0.1/24"}), HasSubstr("'10.77.0.1/24' is no network"));
  EXPECT_THAT(refused("any", {"eth0"}), HasSubstr("'eth0' is no network"));
  for (const char* all : {"0.0.0.0/0", "::/0"}) {
    EXPECT_THAT(refused("isolated", {all}), HasSubstr("holds every address")) << all;
    EXPECT_NO_THROW((void)parse_transport_rule("any", {all}));
  }
}

TEST(TransportRule, AnyAllowsEverything) {
  TransportUse use = host("veth");
  use.connections = {to("203.0.113.7", kEth), to("203.0.113.8", std::nullopt)};
  use.rdma = {"/dev/infiniband/uverbs0"};
  EXPECT_THAT(breaches(parse_transport_rule("any", {}), use, {"UCX_TLS=rc"}, true), IsEmpty());
}

TEST(TransportRule, ATunnelIsOfAKindThatEncrypts) {
  const TransportRule rule = parse_transport_rule("tunnel:wg0", {});
  EXPECT_THAT(breaches(rule, host("wireguard"), {}, true), IsEmpty());
  EXPECT_THAT(breaches(rule, host("xfrm"), {}, true), IsEmpty());
  for (const char* kind : {"veth", "dummy", "gre", "vxlan", "tun", "wireguard2", "Wireguard"}) {
    EXPECT_THAT(breaches(rule, host(kind), {}, true),
                ElementsAre("wg0 is of the kind "s + kind +
                            ", which does not encrypt: only interfaces of the kinds wireguard and "
                            "xfrm do"));
  }
  EXPECT_THAT(breaches(parse_transport_rule("tunnel:eth0", {}), host("wireguard"), {}, true),
              ElementsAre(HasSubstr("eth0 is a device of the hardware, which does not encrypt")));
  EXPECT_THAT(breaches(parse_transport_rule("tunnel:wg1", {}), host("wireguard"), {}, true),
              ElementsAre("this host has no interface wg1"));
  TransportUse down = host("wireguard");
  down.interfaces[1].up = false;
  EXPECT_THAT(breaches(rule, down, {}, true), ElementsAre("wg0 is down"));
}

TEST(TransportRule, EveryConnectionGoesThroughTheTunnel) {
  const TransportRule rule = parse_transport_rule("tunnel:wg0", {});
  TransportUse use = host("wireguard");
  use.local_connections = 9;
  use.connections = {to("10.8.0.2", kTunnel)};
  EXPECT_THAT(breaches(rule, use, {}, true), IsEmpty());
  use.connections = {to("10.8.0.2", kTunnel), to("10.77.0.2", kEth), to("10.77.0.2", kEth),
                     to("10.9.0.2", std::nullopt), to("10.9.0.3", 99)};
  EXPECT_THAT(breaches(rule, use, {}, true),
              ElementsAre("2 connections to 10.77.0.2 over eth0 instead of wg0",
                          "1 connection to 10.9.0.2, to which this host has no route",
                          "1 connection to 10.9.0.3, to which this host has no route"));
}

TEST(TransportRule, ATunnelExcludesRdma) {
  const TransportRule rule = parse_transport_rule("tunnel:wg0", {});
  TransportUse use = host("wireguard");
  use.rdma = {"/dev/infiniband/uverbs0", "NCCL's InfiniBand"};
  EXPECT_THAT(breaches(rule, use, {"UCX_TLS=rc_x"}, true),
              ElementsAre("/dev/infiniband/uverbs0 is in use: RDMA goes past wg0 and is not "
                          "encrypted",
                          "NCCL's InfiniBand is in use: RDMA goes past wg0 and is not encrypted",
                          "UCX_TLS=rc_x chooses RDMA, which goes past wg0 and is not encrypted"));
  EXPECT_THAT(breaches(parse_transport_rule("isolated", {"10.77.0.0/24"}), use, {}, true),
              IsEmpty());
}

TEST(TransportRule, RanksOfOneHostNeedNoTunnel) {
  const TransportRule rule = parse_transport_rule("tunnel:wg9", {});
  TransportUse use = host("veth");
  use.local_connections = 3;
  EXPECT_THAT(breaches(rule, use, {"UCX_TLS=rc"}, false), IsEmpty());
  use.connections = {to("203.0.113.7", kEth)};
  EXPECT_THAT(breaches(rule, use, {}, false), ElementsAre(HasSubstr("instead of wg9")));
}

TEST(TransportRule, IsolatedMeansTheNetworksAndTheInterfacesInThem) {
  const TransportRule rule = parse_transport_rule("isolated", {"10.77.0.0/16", "fd00:7::/64"});
  TransportUse use = host("veth");
  use.connections = {to("10.77.0.2", kEth), to("10.77.9.2", kEth), to("fd00:7::2", kEth)};
  EXPECT_THAT(breaches(rule, use, {}, true), IsEmpty());
  use.connections = {to("10.78.0.2", kEth), to("10.77.0.2", kTunnel), to("10.77.0.3", {})};
  EXPECT_THAT(breaches(rule, use, {}, true),
              ElementsAre("1 connection to 10.77.0.2 over wg0 (veth), which has no address in "
                          "security.networks (10.77.0.0/16, fd00:7::/64)",
                          "1 connection to 10.77.0.3, to which this host has no route",
                          "1 connection to 10.78.0.2, which is in none of security.networks "
                          "(10.77.0.0/16, fd00:7::/64)"));
}

TEST(TransportRule, VariablesThatChooseRdmaAreFound) {
  const auto found = [](const std::map<std::string, std::string>& variables) {
    return rdma_settings([&](const std::string& name) {
      const auto at = variables.find(name);
      return at == variables.end() ? std::nullopt : std::optional(at->second);
    });
  };
  EXPECT_THAT(found({}), IsEmpty());
  EXPECT_THAT(found({{"UCX_TLS", "tcp,self,sm"}, {"OMPI_MCA_btl", "tcp,self,vader"}}), IsEmpty());
  EXPECT_THAT(found({{"UCX_TLS", "^rc,ud"}, {"OMPI_MCA_btl", "^openib"}}), IsEmpty());
  EXPECT_THAT(found({{"NCCL_NET", "Socket"}, {"OMPI_MCA_pml", "ob1"}}), IsEmpty());
  EXPECT_THAT(found({{"UCX_TLS", "self,rc_mlx5,tcp"}}), ElementsAre("UCX_TLS=self,rc_mlx5,tcp"));
  EXPECT_THAT(found({{"OMPI_MCA_btl", "self,openib"}}), ElementsAre("OMPI_MCA_btl=self,openib"));
  EXPECT_THAT(found({{"OMPI_MCA_mtl", "psm2"}, {"NCCL_NET", "IB"}}),
              ElementsAre("OMPI_MCA_mtl=psm2", "NCCL_NET=IB"));
}

TEST(TransportUse, OfThisProcessIsSeen) {
  const TransportUse use = observe_transport();
  EXPECT_FALSE(use.interfaces.empty());
  EXPECT_THAT(use.connections, IsEmpty());  // a test connects to no other host
}

}  // namespace
}  // namespace trireme
