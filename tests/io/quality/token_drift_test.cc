#include "io/quality/token_drift.h"

#include <cmath>

#include <gtest/gtest.h>

namespace trireme {
namespace {

// Half a bit: each distribution gives half of its tokens to one that the other lacks.
TEST(TokenDrift, IsTheDivergenceOfJensenAndShannon) {
  const TokenCounts before{{5, 5, 0, 0}, 10};
  const TokenCounts after{{1, 0, 1, 0}, 2};
  const TokenDrift drift = token_drift(before, after, 10);
  EXPECT_DOUBLE_EQ(drift.divergence, 0.5);
  EXPECT_DOUBLE_EQ(drift.unseen, 0.5);
  ASSERT_EQ(drift.moved.size(), 2U);
  EXPECT_EQ(drift.moved[0].token, 1);
  EXPECT_DOUBLE_EQ(drift.moved[0].before, 0.5);
  EXPECT_DOUBLE_EQ(drift.moved[0].after, 0);
  EXPECT_DOUBLE_EQ(drift.moved[0].bits, 0.25);
  EXPECT_EQ(drift.moved[1].token, 2);
  EXPECT_EQ(token_drift(before, after, 1).moved.size(), 1U);
}

TEST(TokenDrift, IsNoneForEqualSharesAndOneForDisjointTokens) {
  const TokenCounts few{{1, 2, 0}, 3};
  const TokenDrift none = token_drift(few, {{100, 200, 0}, 300}, 10);
  EXPECT_DOUBLE_EQ(none.divergence, 0);
  EXPECT_TRUE(none.moved.empty());
  const TokenDrift all = token_drift(few, {{0, 0, 7}, 7}, 10);
  EXPECT_DOUBLE_EQ(all.divergence, 1);
  EXPECT_DOUBLE_EQ(all.unseen, 1);
}

// Tokens at 0 and 2 on a line before, at 4 after: the mean moves from 1 to 4, by three times the
// standard deviation of 1, which becomes 0.
TEST(EmbeddingDrift, ComparesMeansAndSpreads) {
  const std::vector<float> embedding = {0, 0, 2, 0, 4, 0};
  const TokenCounts before{{1, 1, 0}, 2};
  const EmbeddingDrift drift = embedding_drift(before, {{0, 0, 9}, 9}, embedding);
  EXPECT_DOUBLE_EQ(drift.shift, 3);
  EXPECT_DOUBLE_EQ(drift.cosine, 1);
  EXPECT_DOUBLE_EQ(drift.frechet, 9 + 1);
  const EmbeddingDrift none = embedding_drift(before, before, embedding);
  EXPECT_DOUBLE_EQ(none.shift, 0);
  EXPECT_DOUBLE_EQ(none.frechet, 0);
  EXPECT_TRUE(std::isinf(embedding_drift({{1, 0, 0}, 1}, before, embedding).shift));
}

}  // namespace
}  // namespace trireme
