// Runs the cases on the ranks that mpirun started.
#include <gtest/gtest.h>

#include "tests/mpi/collective_cases.h"
#include "tests/support/mpi_world.h"

namespace trireme {
namespace {

class OnMpi : public testing::TestWithParam<CollectiveCase> {};

TEST_P(OnMpi, Holds) {
  Communicator& world = test_session().world();
  world.set_deadline(std::chrono::seconds(60));
  GetParam().run(world);
}

INSTANTIATE_TEST_SUITE_P(World, OnMpi, testing::ValuesIn(all_cases()),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace trireme
