#include <gtest/gtest.h>

#include "tests/mpi/collective_cases.h"

namespace trireme {
namespace {

void halves_work_beside_the_whole(Communicator& comm) {
  const int color = comm.rank() % 2;
  const auto half = comm.split(color, comm.rank());
  const int members = (comm.size() + 1 - color) / 2;
  ASSERT_EQ(half->size(), members);
  EXPECT_EQ(half->rank(), comm.rank() / 2);
  EXPECT_EQ(half->host(half->rank()), comm.host(comm.rank()));
  std::vector<std::int64_t> ours(50000, 1);
  std::vector<std::int64_t> everybodys(50000, 1);
  Pending a = half->all_reduce(view_of(ours), ReduceOp::sum);
  Pending b = comm.all_reduce(view_of(everybodys), ReduceOp::sum);
  b.wait();
  a.wait();
  EXPECT_EQ(ours.back(), members);
  EXPECT_EQ(everybodys.back(), comm.size());
}

void keys_order_the_ranks(Communicator& comm) {
  const auto reversed = comm.split(7, -comm.rank());
  EXPECT_EQ(reversed->rank(), comm.size() - 1 - comm.rank());
  std::vector<std::int32_t> value = {comm.rank()};
  reversed->broadcast(view_of(value), 0).wait();
  EXPECT_EQ(value[0], comm.size() - 1);
}

void equal_keys_keep_the_order(Communicator& comm) {
  EXPECT_EQ(comm.split(0, 0)->rank(), comm.rank());
}

void groups_of_one(Communicator& comm) {
  const auto alone = comm.split(comm.rank(), 0);
  ASSERT_EQ(alone->size(), 1);
  EXPECT_EQ(all_reduce_value(*alone, 2.5, ReduceOp::sum), 2.5);
  alone->barrier().wait();
  EXPECT_EQ(all_gather_text(*alone, "x"), std::vector<std::string>{"x"});
}

void groups_of_groups(Communicator& comm) {
  const auto half = comm.split(comm.rank() / 2, 0);
  const auto again = half->split(0, -half->rank());
  EXPECT_EQ(again->size(), half->size());
  EXPECT_EQ(all_reduce_value(*again, std::int64_t{1}, ReduceOp::sum), half->size());
  EXPECT_EQ(again->host(again->rank()), comm.host(comm.rank()));
}

}  // namespace

std::vector<CollectiveCase> group_cases() {
  return {{"halves_work_beside_the_whole", halves_work_beside_the_whole},
          {"keys_order_the_ranks", keys_order_the_ranks},
          {"equal_keys_keep_the_order", equal_keys_keep_the_order},
          {"groups_of_one", groups_of_one},
          {"groups_of_groups", groups_of_groups}};
}

}  // namespace trireme
