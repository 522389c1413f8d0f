#include "mpi/session/mpi_transport.h"

#include <cstdlib>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/support/mpi_world.h"

namespace trireme {
namespace {

// Rank 0 cancels when a part has arrived. The rest would arrive during the meeting, at the latest.
TEST(MpiTransport, LeavesBuffersAloneAfterCancelling) {
  Communicator& world = test_session().world();
  const char* const ways = std::getenv("OMPI_MCA_btl");
  if (world.size() != 2 || ways == nullptr || std::string_view(ways) != "self,tcp") {
    GTEST_SKIP() << "skipped: needs two ranks without shared memory (OMPI_MCA_btl=self,tcp)";
  }
  const std::unique_ptr<Transport> transport = make_mpi_transport(world.members().hosts());
  std::vector<char> data(32 << 20, world.rank() == 1 ? 'x' : ' ');
  const auto bytes = std::ssize(data);
  world.barrier().wait();
  if (world.rank() == 1) {
    const TransferId id = transport->start_send(data.data(), bytes, 0, 1);
    while (!transport->finished(id)) {
    }
    world.barrier().wait();
    return;
  }
  const TransferId id = transport->start_recv(data.data(), bytes, 1, 1);
  const volatile char* const first = data.data();
  while (*first == ' ') {
    ASSERT_FALSE(transport->finished(id)) << "no part can be seen to arrive";
  }
  transport->cancel_all();
  const std::vector<char> cancelled = data;
  world.barrier().wait();
  EXPECT_TRUE(data == cancelled) << "MPI has written to a buffer that is not its own any more";
}

}  // namespace
}  // namespace trireme
