// Tests how a run is divided among its ranks.
#include "src/train/run/layout.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

RunConfig config_of(int dp, int tp, int pp) {
  RunConfig c;
  c.model.layers = 4;
  c.model.hidden = 32;
  c.model.heads = 4;
  c.model.vocab = 64;
  c.model.context = 24;
  c.model.complete();
  c.data.sequence = 24;
  c.train.steps = 1;
  c.train.global_batch = 8;
  c.parallel.dp = {dp, ""};
  c.parallel.tp = {tp, ""};
  c.parallel.pp = {pp, ""};
  return c;
}

Layout layout_of(const RunConfig& config) {
  const ParallelConfig& p = config.parallel;
  const auto ranks = static_cast<int>(p.dp.integer * p.tp.integer * p.pp.integer);
  return make_layout(config, ranks, ranks);
}

std::string refusal(const RunConfig& config) {
  return message_of<ConfigError>([&] { (void)layout_of(config); });
}

TEST(Layout, StagesHoldAllLayersOnce) {
  for (const char* schedule : {"1f1b", "interleaved"}) {
    RunConfig config = config_of(1, 1, 2);
    config.parallel.schedule = schedule;
    config.parallel.virtual_stages = schedule == std::string("interleaved") ? 2 : 1;
    const Layout layout = layout_of(config);
    ASSERT_EQ(std::ssize(layout.layers), 2 * config.parallel.virtual_stages);
    std::int64_t end = 0;
    for (const UnitRange& range : layout.layers) {
      EXPECT_EQ(range.lo, end);
      EXPECT_GT(range.hi, range.lo);
      end = range.hi;
    }
    EXPECT_EQ(end, 8);
    EXPECT_EQ(layout.slice(0, 0).first, 0);
    EXPECT_EQ(layout.slice(1, config.parallel.virtual_stages - 1).end, 8);
    EXPECT_TRUE(layout.embeds(0) && !layout.embeds(1));
    EXPECT_TRUE(layout.has_head(1) && !layout.has_head(0));
  }
}

TEST(Layout, ARanksSliceIsItsStageAndItsPartOfTheGroup) {
  const Layout layout = layout_of(config_of(2, 2, 2));
  for (int rank = 0; rank < 8; ++rank) {
    const ModelSlice slice = layout.slice(rank, 0);
    EXPECT_EQ(slice.tensor_rank, rank % 2) << rank;
    EXPECT_EQ(slice.tensor_ranks, 2);
    EXPECT_EQ(slice.first, rank < 4 ? 0 : layout.layers[1].lo) << rank;
  }
}

// The head counts as work: with many ids, its stage has fewer layers. A recomputed block runs
// forward twice, but that is the same for all.
TEST(Layout, BalancesTheWorkOfTheHead) {
  RunConfig config = config_of(1, 1, 2);
  const std::int64_t few = layout_of(config).layers[1].count();
  config.model.vocab = 2000;
  const std::int64_t many = layout_of(config).layers[1].count();
  EXPECT_LT(many, few);
  EXPECT_GE(many, 1);
}

TEST(Layout, BlocksThatAreRecomputedCountForMore) {
  RunConfig config = config_of(1, 1, 2);
  config.model.layers = 12;
  config.train.recompute = "full";
  config.train.recompute_every = 100;  // block 0 alone
  const std::int64_t one = layout_of(config).layers[0].count();
  config.train.recompute = "none";
  EXPECT_LE(one, layout_of(config).layers[0].count());
  EXPECT_EQ(layout_of(config).recompute.kind, Recompute::Kind::none);
  config.train.recompute = "selective";
  EXPECT_EQ(layout_of(config).recompute, (Recompute{Recompute::Kind::selective, 100}));
}

TEST(Layout, ReplicasShareTheMicroBatches) {
  for (const int zero : {0, 1, 2, 3}) {
    RunConfig config = config_of(2, 2, 1);
    config.parallel.zero = zero;
    const Layout layout = layout_of(config);
    std::vector<std::int64_t> all;
    for (const int rank : {0, 2}) {
      const auto own = layout.micro_batches_of(rank, 8);
      EXPECT_TRUE(std::is_sorted(own.begin(), own.end()));
      EXPECT_EQ(own, layout.micro_batches_of(rank + 1, 8)) << "its tensor-parallel neighbour";
      all.insert(all.end(), own.begin(), own.end());
    }
    std::sort(all.begin(), all.end());
    EXPECT_THAT(all, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7)) << zero;
    EXPECT_EQ(layout.shape.micro_batches, 4);
  }
  // gradient_rounds.h draws both ways.
  RunConfig config = config_of(2, 1, 1);
  EXPECT_THAT(layout_of(config).micro_batches_of(1, 8), ElementsAre(4, 5, 6, 7));
  config.parallel.zero = 2;
  EXPECT_THAT(layout_of(config).micro_batches_of(1, 8), ElementsAre(1, 3, 5, 7));
}

TEST(Layout, SharesRowsWhereItCan) {
  RunConfig config = config_of(1, 2, 1);
  EXPECT_TRUE(layout_of(config).sequence_parallel);
  config.parallel.sequence = "off";
  EXPECT_FALSE(layout_of(config).sequence_parallel);
  config.parallel.sequence = "auto";
  config.data.sequence = 23;
  EXPECT_FALSE(layout_of(config).sequence_parallel);
  config.parallel.sequence = "on";
  EXPECT_THAT(refusal(config), HasSubstr("parallel.sequence on: data.sequence 23 % tp 2 = 1"));
  config.data.sequence = 24;
  EXPECT_TRUE(layout_of(config).sequence_parallel);
  EXPECT_FALSE(layout_of(config_of(2, 1, 1)).sequence_parallel);
}

TEST(Layout, RefusesWhatDoesNotDivide) {
  RunConfig config = config_of(1, 1, 1);
  config.parallel.virtual_stages = 2;
  EXPECT_THAT(refusal(config), HasSubstr("parallel.virtual_stages 2 needs a parallel.pp of at "
                                         "least 2"));
  EXPECT_THAT(refusal(config_of(1, 3, 1)), HasSubstr("values of tp that work here: 1, 2, 4"));
  config = config_of(3, 1, 1);
  config.reproducibility = "layout";
  EXPECT_THAT(refusal(config), HasSubstr("8 / 3 leaves a remainder of 2"));
  config.train.global_batch = 6;
  EXPECT_EQ(layout_of(config).reproducibility, Reproducibility::layout);
  config.reproducibility = "elastic";
  EXPECT_THAT(refusal(config), HasSubstr("a power of two"));
}

TEST(Layout, AnOpenDegreeTakesTheRestOfTheRanks) {
  RunConfig config = config_of(1, 2, 1);
  config.parallel.dp = {0, "auto"};
  EXPECT_EQ(make_layout(config, 8, 8).grid.dp(), 4);
}

TEST(DescribeLayout, OneLineWithoutAPipeline) {
  RunConfig config = config_of(2, 2, 1);
  config.parallel.zero = 1;
  EXPECT_THAT(describe_layout(layout_of(config), config),
              ElementsAre("layout: dp 2 x tp 2 x pp 1, zero 1, 4 micro-batches per replica and "
                          "step, sequence parallel"));
  config = config_of(8, 1, 1);
  EXPECT_THAT(
      describe_layout(layout_of(config), config),
      ElementsAre("layout: dp 8 x tp 1 x pp 1, zero 0, 1 micro-batch per replica and step"));
}

TEST(DescribeLayout, ATableOfStages) {
  RunConfig config = config_of(2, 1, 2);
  Layout layout = layout_of(config);
  layout.layers = {{0, 3}, {3, 8}};  // cut in the middle of a block
  const std::vector<std::string> lines = describe_layout(layout, config);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_THAT(lines[0], HasSubstr("4 micro-batches per replica and step, schedule 1f1b"));
  EXPECT_THAT(lines[2], HasSubstr("  0-1 "));
  EXPECT_THAT(lines[2], testing::EndsWith("%  embedding, layers 0, attention of 1"));
  EXPECT_THAT(lines[3], HasSubstr("  2-3 "));
  EXPECT_THAT(lines[3], testing::EndsWith("%  layers MLP of 1, 2-3, head"));
  layout.layers = {{0, 1}, {1, 8}};
  EXPECT_THAT(describe_layout(layout, config)[2],
              testing::EndsWith("embedding, layers attention of 0"));
}

// Without embedding and head, each of two equal halves does half of the work.
TEST(DescribeLayout, SharesOfTheWorkAddUp) {
  RunConfig config = config_of(1, 1, 2);
  const Layout layout = layout_of(config);
  double sum = 0;
  for (const std::string& line : describe_layout(layout, config)) {
    const std::size_t percent = line.find('%');
    if (percent != std::string::npos) {
      sum += std::stod(line.substr(percent - 6, 6));
    }
  }
  EXPECT_NEAR(sum, 100, 0.11);
}

TEST(DescribeLayout, ChunksOfAStageAreSetApart) {
  RunConfig config = config_of(1, 1, 2);
  config.parallel.schedule = "interleaved";
  config.parallel.virtual_stages = 2;
  Layout layout = layout_of(config);
  layout.layers = {{0, 2}, {2, 4}, {4, 6}, {6, 8}};
  const std::vector<std::string> lines = describe_layout(layout, config);
  EXPECT_THAT(lines[2], testing::EndsWith("embedding, layers 0 | 2"));
  EXPECT_THAT(lines[3], testing::EndsWith("%  layers 1 | 3, head"));
}

}  // namespace
}  // namespace trireme
