#include "mpi/hierarchy/host_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(HostLayout, BlocksOfEqualSizeAreRegular) {
  const HostLayout layout = layout_of({"a", "a", "b", "b", "c", "c", "d", "d"}, 5);
  EXPECT_THAT(layout.local, ElementsAre(4, 5));
  EXPECT_EQ(layout.local_rank, 1);
  EXPECT_TRUE(layout.is_regular);
  EXPECT_TRUE(layout.keeps_tree_order);
  EXPECT_THAT(layout.across, ElementsAre(1, 3, 5, 7));
}

TEST(HostLayout, ThreeHostsDoNotKeepTheTree) {
  const HostLayout layout = layout_of({"a", "a", "b", "b", "c", "c"}, 0);
  EXPECT_TRUE(layout.is_regular);
  EXPECT_FALSE(layout.keeps_tree_order);
}

TEST(HostLayout, OneHost) {
  const HostLayout layout = layout_of({"a", "a", "a"}, 2);
  EXPECT_TRUE(layout.is_regular);
  EXPECT_THAT(layout.across, ElementsAre(2));
}

TEST(HostLayout, UnequalHostsAreNotRegular) {
  const HostLayout layout = layout_of({"a", "a", "b"}, 2);
  EXPECT_FALSE(layout.is_regular);
  EXPECT_THAT(layout.local, ElementsAre(2));
  EXPECT_THAT(layout.across, IsEmpty());
  EXPECT_FALSE(layout_of({"a", "a", "b", "b", "b", "c"}, 0).is_regular);
}

TEST(HostLayout, NorIsRoundRobin) {
  const HostLayout layout = layout_of({"a", "b", "a", "b"}, 2);
  EXPECT_FALSE(layout.is_regular);
  EXPECT_THAT(layout.local, ElementsAre(0, 2));
  EXPECT_EQ(layout.local_rank, 1);
  EXPECT_FALSE(layout_of({"a", "b", "b", "a"}, 0).is_regular);
}

}  // namespace
}  // namespace trireme
