#include "mpi/network/sockets.h"

#include <string>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/error.h"

namespace trireme {
namespace {

constexpr const char* kTitle =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n";
constexpr const char* kRest = " 01 00000000:00000000 00:00000000 00000000  1000        0 51234 1\n";

std::string table(const std::string& line) { return kTitle + line; }

TEST(Sockets, LinesOfBothFamiliesAreRead) {
  const auto four = parse_sockets(table(std::string("   0: 01004D0A:1F90 02004D0A:C350") + kRest));
  ASSERT_EQ(four.size(), 1U);
  EXPECT_EQ(four[0].local.text(), "10.77.0.1");
  EXPECT_EQ(four[0].local_port, 8080);
  EXPECT_EQ(four[0].remote.text(), "10.77.0.2");
  EXPECT_EQ(four[0].remote_port, 50000);
  EXPECT_EQ(four[0].inode, 51234U);
  EXPECT_TRUE(four[0].is_connected());
  const auto six = parse_sockets(table(std::string("   1: 0000000000000000FFFF000002004D0A:0016 "
                                                   "00000000000000000000000000000000:0000") +
                                       kRest));
  ASSERT_EQ(six.size(), 1U);
  EXPECT_EQ(six[0].local.text(), "10.77.0.2");
  EXPECT_TRUE(six[0].remote.is_any());
  EXPECT_FALSE(six[0].is_connected());
  EXPECT_TRUE(parse_sockets(kTitle).empty());
  EXPECT_TRUE(parse_sockets("").empty());
}

TEST(Sockets, LinesOfAnotherFormAreRefused) {
  const std::string good = std::string("   0: 01004D0A:1F90 02004D0A:C350") + kRest;
  ASSERT_EQ(parse_sockets(table(good)).size(), 1U);
  for (const std::string& bad :
       {std::string("x\n"), std::string("\n"), good.substr(0, 60) + "\n",
        std::string("   0: 01004D0G:1F90 02004D0A:C350") + kRest,
        std::string("   0: 01004D0A:1F9 02004D0A:C350") + kRest,
        std::string("   0: 01004D0A:11F90 02004D0A:C350") + kRest,
        std::string("   0: 01004D0A 02004D0A:C350") + kRest,
        std::string("   0: 01004D0A01:1F90 02004D0A:C350") + kRest,
        std::string("   0: -1004D0A:1F90 02004D0A:C350") + kRest,
        std::string("   0: 01004D0A:1F90 02004D0A:C350 01 0 0 0 0 0 5x 1\n"),
        std::string("   0: 01004D0A:1F90 02004D0A:C350 01 0 0 0 0 0 18446744073709551616 1\n"),
        std::string("\x1b[2J\n")}) {
    EXPECT_THROW(parse_sockets(table(good + bad)), DataError) << bad;
  }
}

TEST(Sockets, OwnConnectionsAreSeenWhileTheyAreOpen) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&place), sizeof place), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  socklen_t bytes = sizeof place;
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&place), &bytes);
  const int port = ntohs(place.sin_port);
  const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::connect(client, reinterpret_cast<sockaddr*>(&place), sizeof place), 0);

  const auto connected_to_port = [&] {
    int found = 0;
    for (const SocketEntry& each : own_endpoints().sockets) {
      found += each.remote_port == port && each.remote.text() == "127.0.0.1" ? 1 : 0;
    }
    return found;
  };
  const auto listening = [&] {
    int found = 0;
    for (const SocketEntry& each : own_endpoints().sockets) {
      found += each.local_port == port && !each.is_connected() ? 1 : 0;
    }
    return found;
  };
  EXPECT_EQ(connected_to_port(), 1);
  EXPECT_EQ(listening(), 1);
  ::close(client);
  ::close(listener);
  EXPECT_EQ(connected_to_port(), 0);
  EXPECT_EQ(listening(), 0);
}

TEST(Sockets, DevicesThatBypassTheKernelAreKnown) {
  for (const char* path :
       {"/dev/infiniband/uverbs0", "/dev/infiniband/rdma_cm", "/dev/hfi1_0", "/dev/cxi1"}) {
    EXPECT_TRUE(is_rdma_device(path)) << path;
  }
  for (const char* path : {"/dev/null", "/dev/shm/x", "/srv/dev/infiniband/uverbs0", ""}) {
    EXPECT_FALSE(is_rdma_device(path)) << path;
  }
}

}  // namespace
}  // namespace trireme
