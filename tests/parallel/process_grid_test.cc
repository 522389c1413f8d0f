#include "src/parallel/process_grid.h"

#include <array>

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
              HasSubstr("the number of ranks, 6, is not dp 2 x tp 2 x pp 2: start 8 ranks"));
  EXPECT_THAT(refusal(4, {2, 1, 1}),
              HasSubstr("the number of ranks, 4, is not dp 2 x tp 1 x pp 1"));
  EXPECT_THAT(refusal(6, {std::nullopt, 4, 1}),
              HasSubstr("the number of ranks, 6, is not a multiple of dp auto x tp 4 x pp 1 = 4: "
                        "start 4 or 8 ranks, or use dp 2 x tp 3 x pp 1"));
  EXPECT_THAT(refusal(6, {std::nullopt, 1, 4}), HasSubstr("or use dp 2 x tp 1 x pp 3"));
  EXPECT_THAT(refusal(3, {std::nullopt, 2, 2}), HasSubstr("start 4 ranks, or use dp 3"));
  EXPECT_THAT(refusal(1 << 30, {1 << 16, 1 << 16, 1}), HasSubstr("the number of ranks"));
}

TEST(ProcessGrid, RefusesNonsense) {
  EXPECT_THAT(refusal(2, {0, 1, 1}), HasSubstr("parallel.dp is 0"));
  EXPECT_THAT(refusal(2, {2, -1, 1}), HasSubstr("parallel.tp is -1"));
  EXPECT_THAT(refusal(2, {2, 1, 0}), HasSubstr("parallel.pp is 0"));
}

TEST(ProcessGrid, GroupsAlongEveryAxisTileTheWorld) {
  const ProcessGrid grid(24, {3, 2, 4});
  for (int rank = 0; rank < 24; ++rank) {
    EXPECT_EQ(grid.rank_at(grid.dp_rank(rank), grid.tp_rank(rank), grid.pp_rank(rank)), rank);
    for (int other = 0; other < 24; ++other) {
      const bool dp = grid.dp_rank(rank) == grid.dp_rank(other);
      const bool tp = grid.tp_rank(rank) == grid.tp_rank(other);
      const bool pp = grid.pp_rank(rank) == grid.pp_rank(other);
      EXPECT_EQ(grid.dp_color(rank) == grid.dp_color(other), tp && pp);
      EXPECT_EQ(grid.tp_color(rank) == grid.tp_color(other), dp && pp);
      EXPECT_EQ(grid.pp_color(rank) == grid.pp_color(other), dp && tp);
    }
  }
  EXPECT_EQ(grid.tp_color(0), grid.tp_color(1)) << "tensor-parallel neighbours stand together";
}

TEST(ProcessGrid, SolvesWhatIsLeftOpen) {
  const auto degrees = [](int world, const GridShape& shape, int ranks_per_host) {
    const ProcessGrid grid(world, shape, ranks_per_host);
    return std::array{grid.dp(), grid.tp(), grid.pp()};
  };
  EXPECT_EQ(degrees(16, {std::nullopt, 2, 2}, 4), (std::array{4, 2, 2}));
  EXPECT_EQ(degrees(16, {std::nullopt, std::nullopt, 2}, 4), (std::array{8, 1, 2}));
  EXPECT_EQ(degrees(16, {2, std::nullopt, 2}, 2), (std::array{2, 4, 2}));
  EXPECT_EQ(degrees(16, {2, std::nullopt, std::nullopt}, 4), (std::array{2, 4, 2}));
  EXPECT_EQ(degrees(24, {2, std::nullopt, std::nullopt}, 8), (std::array{2, 6, 2}));
  EXPECT_EQ(degrees(16, {2, std::nullopt, std::nullopt}, 0), (std::array{2, 8, 1}));
  EXPECT_EQ(degrees(16, {2, 2, std::nullopt}, 4), (std::array{2, 2, 4}));
  const auto four_heads = [](int tp) { return 4 % tp == 0; };
  EXPECT_EQ(degrees(6, {1, std::nullopt, std::nullopt, four_heads}, 8), (std::array{1, 2, 3}));
}

}  // namespace
}  // namespace trireme
