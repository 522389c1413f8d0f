#include "src/parallel/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::vector<RankPlace> places_on(const std::vector<std::pair<std::string, std::string>>& spots) {
  std::vector<RankPlace> places;
  for (const auto& [host, package] : spots) {
    RankPlace place;
    place.rank = static_cast<int>(places.size());
    place.host = host;
    place.binding.packages = package;
    places.push_back(place);
  }
  return places;
}

TEST(Placement, RanksOfAHostStandTogether) {
  const auto places = places_on({{"a", "0"}, {"a", "0"}, {"b", "0"}, {"b", "1"}});
  EXPECT_EQ(describe_group("dp", {0, 1, 2, 3}, places),
            "dp group of ranks 0-3: host a, socket 0 (0-1); host b, socket 0 (2); host b, socket 1 "
            "(3): 2 hosts: inside them first, then between them");
  EXPECT_THAT(describe_group("dp", {0, 1}, places), HasSubstr("one host: shared memory"));
  EXPECT_THAT(describe_group("dp", {2, 3}, places), HasSubstr("one host, across sockets"));
  EXPECT_THAT(describe_group("pp", {0, 2}, places), HasSubstr("all traffic crosses the network"));
}

TEST(Placement, TensorParallelGroupsBelongInsideASocket) {
  const auto places = places_on({{"a", "0"}, {"b", "0"}, {"b", "1"}});
  EXPECT_THAT(describe_group("tp", {0, 1}, places), HasSubstr("crosses hosts in every layer"));
  EXPECT_THAT(describe_group("tp", {1, 2}, places), HasSubstr("crosses sockets in every layer"));
}

TEST(Placement, RoundRobinIsPointedOut) {
  const auto places = places_on({{"a", ""}, {"b", ""}, {"a", ""}, {"b", ""}});
  EXPECT_THAT(describe_group("dp", {0, 1, 2, 3}, places),
              AllOf(HasSubstr("--map-by core"), HasSubstr("--distribution=block")));
}

TEST(Placement, OneLineAGroup) {
  const auto places = places_on({{"a", "0"}, {"a", "0"}, {"b", "0"}, {"b", "0"}});
  const auto lines = describe_placement(ProcessGrid(4, {}), places);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0], HasSubstr("world 4 = pp 1 x dp 4 x tp 1"));
  EXPECT_THAT(lines[1], HasSubstr("dp group of ranks 0-3"));
  EXPECT_EQ(describe_placement(ProcessGrid(1, {}), places_on({{"a", ""}})).size(), 1U);
}

}  // namespace
}  // namespace trireme
