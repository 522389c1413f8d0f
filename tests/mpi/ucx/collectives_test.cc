// Runs the cases over UCX on the ranks that mpirun started, and tests what only UCX has to
// guarantee.
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpi/collective/queued_communicator.h"
#include "mpi/ucx/ucx_transport.h"
#include "tests/mpi/collective_cases.h"
#include "tests/support/mpi_world.h"

namespace trireme {
namespace {

using testing::HasSubstr;

std::unique_ptr<Communicator> make_world() {
  Communicator& mpi = test_session().world();
  auto world = std::make_unique<QueuedCommunicator>(make_ucx_transport(mpi), "world");
  world->set_deadline(std::chrono::seconds(60));
  return world;
}

class OnUcx : public testing::TestWithParam<CollectiveCase> {
 protected:
  static void SetUpTestSuite() { world_ = make_world(); }
  static void TearDownTestSuite() { world_.reset(); }
  static std::unique_ptr<Communicator> world_;
};

std::unique_ptr<Communicator> OnUcx::world_;

TEST_P(OnUcx, Holds) { GetParam().run(*world_); }

INSTANTIATE_TEST_SUITE_P(World, OnUcx, testing::ValuesIn(all_cases()),
                         [](const auto& each) { return std::string(each.param.name); });

// Sums over UCX have the same bits as over MPI.
TEST(Ucx, BitsAreMpis) {
  const auto world = make_world();
  Communicator& mpi = test_session().world();
  for (const std::int64_t n : {1, 1000, 5000, 300001}) {
    std::vector<float> ours(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) {
      ours[static_cast<std::size_t>(i)] = static_cast<float>(sample(world->rank(), i));
    }
    std::vector<float> mpis = ours;
    world->all_reduce(view_of(ours), ReduceOp::sum).wait();
    mpi.all_reduce(view_of(mpis), ReduceOp::sum).wait();
    EXPECT_EQ(std::memcmp(ours.data(), mpis.data(), ours.size() * sizeof(float)), 0) << n;
  }
}

// Connects all ranks. Making a connection needs both ends; later, a small message is sent without
// the receiver's help.
void connect_all(Communicator& comm) {
  const auto n = static_cast<std::size_t>(comm.size());
  std::vector<float> out(n, 1.0F);
  std::vector<float> in(n);
  const std::vector<std::int64_t> counts(n, 1);
  for (int round = 0; round < 3; ++round) {
    comm.all_to_all(view_of(out), counts, view_of(in), counts).wait();
  }
}

// A rank that ends its group in good order loses nothing of what it has sent, and its departure is
// no error for the ranks that continue.
TEST(Ucx, LeavingInGoodOrderLosesNothing) {
  Communicator& mpi = test_session().world();
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{200}, std::size_t{4000}}) {
    auto world = make_world();
    connect_all(*world);
    std::vector<std::uint8_t> data(bytes, 7);
    const int last = world->size() - 1;
    if (world->rank() == 0) {
      for (int to = 1; to < world->size(); ++to) {
        world->send(view_of(data), to, 3).wait();
      }
      world.reset();
      mpi.barrier().wait();
    } else {
      mpi.barrier().wait();
      data.assign(bytes, 0);
      // The remaining ranks meet first, so that rank 0's departure is noticed while they wait for
      // each other.
      std::vector<std::uint8_t> token(100000, 1);
      if (world->rank() == 1 && last > 1) {
        world->recv(view_of(token), last, 0).wait();
      } else if (world->rank() == last && last > 1) {
        world->send(view_of(token), 1, 0).wait();
      }
      world->recv(view_of(data), 0, 3).wait();
      EXPECT_EQ(data, std::vector<std::uint8_t>(bytes, 7));
    }
  }
}

// A rank that waits for one that has left learns it at once.
TEST(Ucx, WaitingForOneWhoLeftIsAnError) {
  Communicator& mpi = test_session().world();
  if (mpi.size() == 1) {
    GTEST_SKIP() << "needs two ranks: run this program under mpirun -n 2";
  }
  auto world = make_world();
  connect_all(*world);
  if (world->rank() == 0) {
    world.reset();
  } else if (world->rank() == 1 && std::getenv("UCX_TLS") != nullptr) {
    std::vector<float> data(100);
    try {
      world->recv(view_of(data), 0, 0).wait();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const CommError& error) {
      EXPECT_THAT(error.what(), HasSubstr("rank 0 (host "));
      EXPECT_THAT(error.what(), HasSubstr("has left the group"));
    }
  }
  mpi.barrier().wait();
}

}  // namespace
}  // namespace trireme
