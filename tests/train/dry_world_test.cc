// Tests the groups of a rank whose neighbours do not exist.
#include "src/train/memory/dry_world.h"

#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

// The grid has dp 2, tp 3 and pp 4.
class DryWorldTest : public testing::Test {
 protected:
  ProcessGrid grid_{24, {2, 3, 4}};
};

TEST_F(DryWorldTest, HasTheRanksOfTheGrid) {
  for (int rank = 0; rank < 24; ++rank) {
    DryWorld world(grid_, rank);
    EXPECT_EQ(world.rank(), rank);
    EXPECT_EQ(world.size(), 24);
    struct Group {
      const char* name;
      int rank;
      int size;
    };
    const int in_replica = grid_.pp_rank(rank) * 3 + grid_.tp_rank(rank);
    for (const Group& expected :
         {Group{"dp", grid_.dp_rank(rank), 2}, Group{"dp_control", grid_.dp_rank(rank), 2},
          Group{"tp", grid_.tp_rank(rank), 3}, Group{"tp_control", grid_.tp_rank(rank), 3},
          Group{"pp", grid_.pp_rank(rank), 4}, Group{"replica", in_replica, 12}}) {
      const auto group = world.split(0, 0, expected.name);
      EXPECT_EQ(group->rank(), expected.rank) << rank << " " << expected.name;
      EXPECT_EQ(group->size(), expected.size) << rank << " " << expected.name;
    }
  }
}

TEST_F(DryWorldTest, KnowsTheGroupsOfAnEngineOnly) {
  DryWorld world(grid_, 0);
  EXPECT_THROW((void)world.split(0, 0, "ep"), InternalError);
  EXPECT_THROW((void)world.split(0, 0), InternalError);
}

TEST_F(DryWorldTest, OperationsTransferNothing) {
  DryWorld world(grid_, 5);
  std::vector<double> values(24, 7);
  const View view{values.data(), 24, DType::f64};
  world.all_reduce(view, ReduceOp::sum).wait();
  world.all_gather(view).wait();
  world.broadcast(view, 3).wait();
  world.recv(view, 3, 0).wait();
  EXPECT_EQ(values, std::vector<double>(24, 7));
}

// Most memory is held while reductions between replicas are under way.
TEST_F(DryWorldTest, OnlyReplicasAreWaitedFor) {
  DryWorld world(grid_, 0);
  std::vector<float> values(24);
  const View view{values.data(), 24, DType::f32};
  for (const char* name : {"tp", "pp", "replica"}) {
    EXPECT_TRUE(world.split(0, 0, name)->all_reduce(view, ReduceOp::sum).done()) << name;
  }
  EXPECT_TRUE(world.barrier().done());
  const auto dp = world.split(0, 0, "dp");
  Pending pending = dp->reduce_scatter(view, ReduceOp::sum);
  EXPECT_FALSE(pending.done());
  pending.wait();
  EXPECT_TRUE(pending.done());
  Pending given_up = dp->all_reduce(view, ReduceOp::sum);
  given_up.abandon();
  EXPECT_FALSE(given_up.done());
}

}  // namespace
}  // namespace trireme
