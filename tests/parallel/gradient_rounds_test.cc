#include "src/parallel/gradient_rounds.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/parallel/tree_nodes.h"

namespace trireme {
namespace {

TEST(GradientRounds, AreNodesOfTheTreeAtEveryLevel) {
  for (std::int64_t micro_batches = 1; micro_batches <= 48; ++micro_batches) {
    for (int ranks = 1; ranks <= 16 && micro_batches % ranks == 0; ranks *= 2) {
      for (int level = 0; level <= 3; ++level) {
        const GradientRounds split =
            gradient_rounds(micro_batches, ranks, level, Reproducibility::elastic);
        ASSERT_EQ(split.rounds * split.each * ranks, micro_batches);
        EXPECT_EQ(split.rounds > 1, level >= 2 && ranks > 1 && micro_batches / ranks % 2 == 0);
        const std::int64_t per_round = split.each * ranks;
        for (std::int64_t lo = 0; lo < micro_batches; lo += per_round) {
          EXPECT_TRUE(is_node({lo, lo + per_round}, micro_batches));
        }
        for (std::int64_t lo = 0; lo < micro_batches; lo += split.each) {
          EXPECT_TRUE(is_node({lo, lo + split.each}, micro_batches));
        }
      }
    }
  }
}

TEST(GradientRounds, ShareOutEveryMicroBatchOnce) {
  EXPECT_EQ((GradientRounds{1, 4}.numbers(1, 2)), (std::vector<std::int64_t>{4, 5, 6, 7}));
  EXPECT_EQ((GradientRounds{4, 1}.numbers(1, 2)), (std::vector<std::int64_t>{1, 3, 5, 7}));
  EXPECT_EQ((GradientRounds{2, 3}.numbers(0, 2)), (std::vector<std::int64_t>{0, 1, 2, 6, 7, 8}));
  const GradientRounds split = gradient_rounds(24, 3, 2, Reproducibility::layout);
  EXPECT_EQ(split.rounds, 8);
  std::vector<std::int64_t> all;
  for (int rank = 0; rank < 3; ++rank) {
    const std::vector<std::int64_t> own = split.numbers(rank, 3);
    EXPECT_TRUE(std::is_sorted(own.begin(), own.end()));
    all.insert(all.end(), own.begin(), own.end());
  }
  std::sort(all.begin(), all.end());
  std::vector<std::int64_t> expected(24);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
}

TEST(GradientRounds, RefuseWhatCannotBeShared) {
  EXPECT_THROW(gradient_rounds(8, 3, 2, Reproducibility::layout), ConfigError);
  EXPECT_THROW(gradient_rounds(9, 3, 2, Reproducibility::elastic), ConfigError);
}

}  // namespace
}  // namespace trireme
