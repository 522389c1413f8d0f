// Runs the cases on a group of one rank and on ranks that are threads.
#include <tuple>

#include <gtest/gtest.h>

#include "mpi/self_communicator.h"
#include "mpi/thread/thread_world.h"
#include "tests/mpi/collective_cases.h"

namespace trireme {
namespace {

class OnThreads : public testing::TestWithParam<std::tuple<int, CollectiveCase>> {};

TEST_P(OnThreads, Holds) {
  const auto& [ranks, test] = GetParam();
  ThreadWorld world(ranks);
  world.run(test.run);
}

std::string thread_name(const testing::TestParamInfo<OnThreads::ParamType>& info) {
  return std::get<1>(info.param).name + std::string("_") + std::to_string(std::get<0>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Ranks, OnThreads,
                         testing::Combine(testing::Values(1, 2, 3, 4, 5, 7, 8),
                                          testing::ValuesIn(all_cases())),
                         thread_name);

class OnSelf : public testing::TestWithParam<CollectiveCase> {};

TEST_P(OnSelf, Holds) {
  SelfCommunicator comm;
  GetParam().run(comm);
}

INSTANTIATE_TEST_SUITE_P(Self, OnSelf, testing::ValuesIn(all_cases()),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace trireme
