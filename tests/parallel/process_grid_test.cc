#include "src/parallel/process_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

using testing::HasSubstr;

std::string refusal(int world_size, const GridShape& shape) {
  try {
    const ProcessGrid grid(world_size, shape);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ProcessGrid, AutoTakesEveryRank) {
  const ProcessGrid grid(6, {});
  EXPECT_EQ(grid.dp(), 6);
  EXPECT_EQ(grid.tp(), 1);
  EXPECT_EQ(grid.pp(), 1);
  for (int rank = 0; rank < 6; ++rank) {
    EXPECT_EQ(grid.dp_rank(rank), rank);
    EXPECT_EQ(grid.rank_at(grid.dp_rank(rank), grid.tp_rank(rank), grid.pp_rank(rank)), rank);
    EXPECT_EQ(grid.dp_color(rank), 0);
  }
}

TEST(ProcessGrid, SaysTheFormula) {
  EXPECT_THAT(refusal(6, {2, 2, 2}),
              HasSubstr("world_size 6 != dp 2 x tp 2 x pp 2: start 8 ranks"));
  EXPECT_THAT(refusal(4, {2, 1, 1}), HasSubstr("world_size 4 != dp 2 x tp 1 x pp 1"));
  EXPECT_THAT(refusal(6, {std::nullopt, 4, 1}),
              HasSubstr("world_size 6 is not a multiple of tp 4 x pp 1 = 4: start 8 ranks"));
  EXPECT_THAT(refusal(1 << 30, {1 << 16, 1 << 16, 1}), HasSubstr("world_size"));
}

TEST(ProcessGrid, RefusesNonsense) {
  EXPECT_THAT(refusal(2, {0, 1, 1}), HasSubstr("parallel.dp: 0"));
  EXPECT_THAT(refusal(2, {2, -1, 1}), HasSubstr("parallel.tp: -1"));
  EXPECT_THAT(refusal(2, {2, 1, 0}), HasSubstr("parallel.pp: 0"));
  EXPECT_THAT(refusal(4, {2, 2, 1}), HasSubstr("parallel.tp: 2 is not available"));
  EXPECT_THAT(refusal(4, {std::nullopt, 1, 2}), HasSubstr("parallel.pp: 2 is not available"));
}

}  // namespace
}  // namespace trireme
