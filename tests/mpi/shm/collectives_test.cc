// Runs the cases on ranks that are threads and share memory.
#include <tuple>

#include <gtest/gtest.h>

#include "tests/mpi/collective_cases.h"
#include "tests/mpi/shm/shm_thread_world.h"

namespace trireme {
namespace {

class OnShmThreads : public testing::TestWithParam<std::tuple<int, CollectiveCase>> {};

TEST_P(OnShmThreads, Holds) {
  const auto& [ranks, test] = GetParam();
  ShmThreadWorld world(ranks);
  world.run([&run = test.run](Communicator& comm) {
    comm.set_deadline(std::chrono::seconds(120));
    run(comm);
  });
}

std::string name_of_case(const testing::TestParamInfo<OnShmThreads::ParamType>& info) {
  return std::get<1>(info.param).name + std::string("_") + std::to_string(std::get<0>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Ranks, OnShmThreads,
                         testing::Combine(testing::Values(1, 2, 3, 4, 5, 8),
                                          testing::ValuesIn(all_cases())),
                         name_of_case);

}  // namespace
}  // namespace trireme
