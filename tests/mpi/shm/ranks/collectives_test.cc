// Runs the cases on processes of one host that share memory.
#include <memory>

#include <gtest/gtest.h>

#include "mpi/collective/queued_communicator.h"
#include "mpi/shm/shm_transport.h"
#include "tests/mpi/collective_cases.h"
#include "tests/support/mpi_world.h"

namespace trireme {
namespace {

std::unique_ptr<Communicator> make_world() {
  Communicator& world = test_session().world();
  return std::make_unique<QueuedCommunicator>(make_shm_transport(world), "world");
}

class OnShm : public testing::TestWithParam<CollectiveCase> {};

TEST_P(OnShm, Holds) {
  const auto world = make_world();
  world->set_deadline(std::chrono::seconds(60));
  GetParam().run(*world);
  world->barrier().wait();
}

INSTANTIATE_TEST_SUITE_P(World, OnShm, testing::ValuesIn(all_cases()),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace trireme
