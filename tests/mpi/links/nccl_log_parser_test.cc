// Tests the reader of NCCL's log with lines as NCCL 2.18 to 2.30 write them (the format strings of
// src/transport/{p2p,shm,net,net_ib}.cc, src/graph/search.cc, src/init.cc and src/debug.cc of each
// version), and with damaged ones.
#include "mpi/links/nccl_log_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string line(const std::string& message) {
  return "node7:4711:4820 [3] NCCL INFO " + message + "\n";
}

constexpr const char* kPorts =
    "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [2]odd:1/Token [RO]; OOB eth0:10.0.0.7<0>";

Link only_link(const std::string& text) {
  const NcclConnections found = NcclLogParser().parse(text);
  EXPECT_EQ(found.links.size(), 1U) << text;
  return found.links.empty() ? Link{} : found.links.front();
}

Link channel(const std::string& rest, const std::string& before = "") {
  return only_link(line(kPorts) + before + line("Channel " + rest));
}

TEST(NcclLog, ReadsTheLinksOfTheNetwork) {
  EXPECT_EQ(channel("00/0 : 7[7] -> 8[0] [send] via NET/IB/0/GDRDMA"),
            (Link{7, 8, LinkKind::infiniband, true}));
  EXPECT_EQ(channel("00/0 : 7[7] -> 8[0] [receive] via NET/IB/0"),
            (Link{7, 8, LinkKind::infiniband, false}));
  EXPECT_EQ(channel("15/1 : 7[7] -> 8[0] [send] via NET/IB/1(3)/GDRDMA/Shared"),
            (Link{7, 8, LinkKind::roce, true}));
  EXPECT_EQ(channel("15/1 : 7[7] -> 8[0] [send] via NET/IBext_v8/1/GDRDMA(PCI)/Shared"),
            (Link{7, 8, LinkKind::roce, true}));
  EXPECT_EQ(channel("00/0 : 0[0] -> 1[0] [send] via NET/Socket/0"),
            (Link{0, 1, LinkKind::socket, false}));
  EXPECT_EQ(channel("00/0 : 0[0] -> 1[0] [send] via NET/AWS Libfabric/0/GDRDMA"),
            (Link{0, 1, LinkKind::plugin, true}));
  for (const char* const unknown : {"NET/IB/2", "NET/IB/9", "NET/IB/x", "NET/IB"}) {
    EXPECT_EQ(channel(std::string("00/0 : 0[0] -> 1[0] [send] via ") + unknown).kind,
              LinkKind::rdma)
        << unknown;
  }
}

TEST(NcclLog, ReadsTheLinksWithinAHost) {
  const auto ring = [](const std::string& path) {
    return line("Pattern 4, crossNic 0, nChannels 16, bw 20.000000/20.000000, type " + path +
                "/PXN, sameChannels 1");
  };
  const std::string direct = "00/0 : 0[0] -> 1[1] via P2P/CUMEM/read";
  EXPECT_EQ(channel(direct, ring("NVL")), (Link{0, 1, LinkKind::nvlink, false}));
  EXPECT_EQ(channel(direct, ring("PHB")).kind, LinkKind::pcie);
  EXPECT_EQ(channel(direct, ring("NEW")).kind, LinkKind::p2p) << "a type of a later version";
  EXPECT_EQ(channel(direct).kind, LinkKind::p2p) << "the path is not known";
  EXPECT_EQ(channel("00/0 : 0[0] -> 1[1] via P2P/IPC", ring("NVB")).kind, LinkKind::nvlink);
  EXPECT_EQ(channel("00/0 : 0[0] -> 1[1] via P2P/direct pointer/read", ring("SYS")).kind,
            LinkKind::pcie);
  EXPECT_EQ(channel("00/0 : 0[0] -> 1[1] via P2P/indirect/2[2]/read", ring("NVL")).kind,
            LinkKind::nvlink);
  EXPECT_EQ(channel("00/0 : 0[0] -> 9[1] via P2P/MNNVL").kind, LinkKind::nvlink);
  EXPECT_EQ(channel("00 : 0[0] -> 1[1] via SHM/direct/direct").kind, LinkKind::shm);
  EXPECT_EQ(channel("03 : 12[1b000] -> 13[3d000] via SHM/CE/CE").from, 12);
  EXPECT_EQ(channel("03 : 0[0] -> 1[1] via SHM/direct").kind, LinkKind::shm) << "2.30";
}

TEST(NcclLog, NamesEachLinkOnceAndAllKindsOfAPair) {
  const NcclConnections found = NcclLogParser().parse(
      line(kPorts) + line("Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA") +
      line("Channel 01/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA") +
      line("Channel 02/0 : 0[0] -> 1[0] [send] via NET/IB/0"));
  EXPECT_THAT(found.links, ElementsAre(Link{0, 1, LinkKind::infiniband, false},
                                       Link{0, 1, LinkKind::infiniband, true}));
}

TEST(NcclLog, ReadsChannelsOfSwitchesAndWarnings) {
  const NcclConnections found = NcclLogParser().parse(
      line("16 coll channels, 16 collnet channels, 24 nvls channels, 16 p2p channels, 2 p2p "
           "channels per peer") +
      "\n[2026-11-24 08:00:00] node7:1:2 [0] transport/net_ib.cc:99 NCCL WARN NET/IB : Got async "
      "event\n");
  EXPECT_EQ(found.nvls_channels, 24);
  EXPECT_THAT(found.warnings, ElementsAre("NET/IB : Got async event"));
  EXPECT_EQ(NcclLogParser()
                .parse(line("8 coll channels, 0 nvls channels, 8 p2p channels, 8 p2p channels per "
                            "peer"))
                .nvls_channels,
            0);
}

TEST(NcclLog, RemembersTheAdaptersOfEarlierParts) {
  NcclLogParser parser;
  (void)parser.parse(line(kPorts));
  const NcclConnections found =
      parser.parse(line("Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/1"));
  EXPECT_THAT(found.links, ElementsAre(Link{0, 1, LinkKind::roce, false}));
}

TEST(NcclLog, IgnoresWhatItDoesNotKnow) {
  std::string text;
  for (const char* const message :
       {"Channel", "Channel ", "Channel 00/0 : ", "Channel 00/0 : -1[0] -> 1[0] via P2P/IPC",
        "Channel 00/0 : 0[0] -> 1[0] via TIN CANS", "Channel 00/0 : 0[0] -> 1 via P2P/IPC",
        "Channel 00/0 : 0[0 -> 1 via P2P/IPC", "Channel 00/x : 0[0] -> 1[1] via P2P/IPC",
        "Channel 00/0 : 99999999999[0] -> 1[1] via P2P/IPC", "Channel 00/02 :    0   1   2   3",
        "NET/IB : Using", "NET/IB : Using [", "NET/IB : No device found.", "Pattern 4, ",
        "Pattern 4, type", " nvls channels", " coll channels,  nvls channels",
        "x coll channels, y nvls channels", "CollNet 00/0 : 0 [send] via COLLNET/SHARP/0"}) {
    text += line(message);
  }
  text += "Channel 00/0 : 0[0] -> 1[1] via P2P/IPC\n";  // not from NCCL
  text += std::string("\0\xff NCCL INFO \0", 14) + " NCCL INFO ";
  const NcclConnections found = NcclLogParser().parse(text);
  EXPECT_THAT(found.links, IsEmpty());
  EXPECT_EQ(found.nvls_channels, 0);
  EXPECT_THAT(found.warnings, IsEmpty());
}

TEST(NcclLog, KeepsFewWarningsAndShortOnes) {
  std::string text;
  for (int i = 0; i < 1000; ++i) {
    text += "h:1:2 [0] a.cc:1 NCCL WARN " + std::string(1000, 'w') + "\n";
  }
  const NcclConnections found = NcclLogParser().parse(text);
  EXPECT_EQ(found.warnings.size(), NcclLogParser::kMostWarnings);
  EXPECT_EQ(found.warnings.front().size(), 400U);
}

}  // namespace
}  // namespace trireme
