#include "mpi/group_members.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

using testing::ElementsAre;

TEST(GroupMembers, OfTheWorldAreNumberedByTheirHosts) {
  const auto world = GroupMembers::of_world(1, {"a", "b", "b"});
  EXPECT_EQ(world.rank(), 1);
  EXPECT_EQ(world.size(), 3);
  EXPECT_THAT(world.world_ranks(), ElementsAre(0, 1, 2));
  EXPECT_EQ(world.describe(2), "rank 2 (host b)");
}

// A subset of a subset still has the numbers in the world.
TEST(GroupMembers, SubsetsKeepTheirOrder) {
  const auto world = GroupMembers::of_world(3, {"a", "b", "c", "d"});
  const GroupMembers part = world.subset({3, 1, 0}).subset({2, 0});
  EXPECT_EQ(part.rank(), 1);
  EXPECT_THAT(part.world_ranks(), ElementsAre(0, 3));
  EXPECT_THAT(part.hosts(), ElementsAre("a", "d"));
}

TEST(GroupMembers, RefuseRanksThatAreNotThere) {
  EXPECT_THROW(GroupMembers::of_world(2, {"a", "b"}), InternalError);
  const auto world = GroupMembers::of_world(0, {"a", "b"});
  EXPECT_THROW((void)world.host(2), InternalError);
  EXPECT_THROW((void)world.subset({1}), InternalError);
}

}  // namespace
}  // namespace trireme
