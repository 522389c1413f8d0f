#include "src/parallel/pipeline/balance.h"

#include <algorithm>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/base/philox.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::HasSubstr;

double largest(const ModelCosts& costs, const std::vector<UnitRange>& ranges, int stages) {
  const std::vector<double> ranks = rank_costs(costs, ranges, stages);
  return *std::max_element(ranks.begin(), ranks.end());
}

void expect_covers(const ModelCosts& costs, const PipelineShape& shape,
                   const std::vector<UnitRange>& ranges) {
  ASSERT_EQ(static_cast<int>(ranges.size()), shape.virtual_stages());
  std::int64_t at = 0;
  for (const UnitRange& range : ranges) {
    EXPECT_EQ(range.lo, at);
    EXPECT_GE(range.count(), 1);
    at = range.hi;
  }
  EXPECT_EQ(at, static_cast<std::int64_t>(costs.units.size()));
}

// Returns the best of all cuts, which are all tried.
double best_of_all(const ModelCosts& costs, const PipelineShape& shape) {
  double best = 1e300;
  std::vector<UnitRange> ranges;
  const auto units = static_cast<std::int64_t>(costs.units.size());
  const std::function<void(std::int64_t)> extend = [&](std::int64_t lo) {
    const int left = shape.virtual_stages() - static_cast<int>(ranges.size());
    if (left == 0) {
      best = std::min(best, largest(costs, ranges, shape.stages));
      return;
    }
    for (std::int64_t hi = left == 1 ? units : lo + 1; hi <= units - left + 1; ++hi) {
      ranges.push_back({lo, hi});
      extend(hi);
      ranges.pop_back();
    }
  };
  extend(0);
  return best;
}

// Returns layers in which attention and MLP alternate, as in a model.
ModelCosts layers(int count, double attention, double mlp, double embedding, double head) {
  ModelCosts costs{{}, embedding, head};
  for (int layer = 0; layer < count; ++layer) {
    costs.units.push_back(attention);
    costs.units.push_back(mlp);
  }
  return costs;
}

TEST(StageBalance, EqualLayersGiveEqualStages) {
  const ModelCosts costs = layers(4, 1, 1, 0, 0);
  EXPECT_EQ(balance_stages(costs, {4, 1}),
            (std::vector<UnitRange>{{0, 2}, {2, 4}, {4, 6}, {6, 8}}));
  EXPECT_EQ(balance_stages(costs, {2, 2}),
            (std::vector<UnitRange>{{0, 2}, {2, 4}, {4, 6}, {6, 8}}));
  EXPECT_EQ(balance_stages(costs, {1, 1}), (std::vector<UnitRange>{{0, 8}}));
}

// The head costs as much as three layers, the embedding as half a layer.
TEST(StageBalance, EmbeddingAndHeadCount) {
  const ModelCosts costs = layers(6, 1, 1, 0.5, 3);
  EXPECT_EQ(balance_stages(costs, {3, 1}), (std::vector<UnitRange>{{0, 5}, {5, 10}, {10, 12}}));
}

TEST(StageBalance, OneChunkIsAsGoodAsAnyCut) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    ModelCosts costs{{}, static_cast<double>(mix64(seed) % 9), static_cast<double>(seed % 7)};
    const std::uint64_t units = 4 + seed % 8;
    for (std::uint64_t i = 0; i < units; ++i) {
      costs.units.push_back(static_cast<double>(1 + mix64(seed * 100 + i) % 9));
    }
    for (int p = 1; p <= 4; ++p) {
      const auto ranges = balance_stages(costs, {p, 1});
      expect_covers(costs, {p, 1}, ranges);
      EXPECT_EQ(largest(costs, ranges, p), best_of_all(costs, {p, 1})) << "seed " << seed;
    }
  }
}

// A rank's cost is the sum over its chunks. For realistic models, too, no cut is better.
TEST(StageBalance, SeveralChunksOfRealModels) {
  for (const int count : {4, 6, 7}) {
    for (const double mlp : {1.0, 2.0, 1.5}) {
      for (const double head : {0.0, 2.5, 6.0}) {
        const ModelCosts costs = layers(count, 1, mlp, 0.25, head);
        for (const PipelineShape& shape : {PipelineShape{2, 2}, {2, 3}, {3, 2}, {2, 4}, {4, 2}}) {
          if (shape.virtual_stages() > 2 * count) {
            continue;
          }
          const auto ranges = balance_stages(costs, shape);
          expect_covers(costs, shape, ranges);
          EXPECT_DOUBLE_EQ(largest(costs, ranges, shape.stages), best_of_all(costs, shape))
              << count << " layers, mlp " << mlp << ", head " << head << ", p " << shape.stages
              << " v " << shape.chunks;
        }
      }
    }
  }
}

TEST(StageBalance, DeepModelsAreQuickAndTheSameEachTime) {
  const ModelCosts costs = layers(96, 1, 1.75, 0.5, 4);
  const PipelineShape shape{16, 4};
  const auto ranges = balance_stages(costs, shape);
  expect_covers(costs, shape, ranges);
  EXPECT_EQ(ranges, balance_stages(costs, shape));
  double all = costs.embedding + costs.head;
  for (const double unit : costs.units) {
    all += unit;
  }
  EXPECT_LE(largest(costs, ranges, 16), all / 16 + 1.75);
}

TEST(StageBalance, RefusesMoreStagesThanUnits) {
  const ModelCosts costs = layers(3, 1, 1, 0, 0);
  EXPECT_THAT(message_of<ConfigError>([&] {
                (void)balance_stages(costs, {4, 2});
              }),
              HasSubstr("4 pipeline stages x 2 virtual stages per rank = 8, more than the model's "
                        "6 residual layers"));
  EXPECT_THAT(message_of<ConfigError>([&] {
                (void)balance_stages(costs, {4, 2});
              }),
              HasSubstr("use parallel.virtual_stages 1 with the schedule 1f1b, or parallel.pp 3"));
  expect_covers(costs, {3, 2}, balance_stages(costs, {3, 2}));
}

}  // namespace
}  // namespace trireme
