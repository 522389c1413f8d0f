// The scores of a sequence in pieces are those that the loss of whole sequences gives.
#include "src/evaluation/scorer.h"

#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/nn/tiny_model.h"

namespace trireme {
namespace {

class ScorerTest : public testing::Test {
 protected:
  static constexpr std::int64_t kWindow = 7;

  ScorerTest()
      : tiny_(tiny_llama(), DType::f32, kernels_named("reference")),
        scorer_(tiny_.model, tiny_.run, DType::f32, kWindow),
        tokens_(1, 20, tiny_llama().vocab, 1) {}

  std::span<const std::int32_t> ids(std::size_t first, std::size_t count) const {
    return std::span(tokens_.ids).subspan(first, count);
  }
  // Returns the log-likelihood of ids [first + 1, first + count], each after all before it from
  // `first` on.
  double expected(std::size_t first, std::size_t count) {
    const std::vector<std::int32_t> targets(ids(first + 1, count).begin(),
                                            ids(first + 1, count).end());
    const auto n = static_cast<std::int64_t>(count);
    return count == 0
               ? 0
               : -tiny_.model.evaluate({1, n, ConstView(ids(first, count).data(), n, DType::i32),
                                        ConstView(targets.data(), n, DType::i32)},
                                       tiny_.run);
  }

  TinyModel tiny_;
  Scorer scorer_;
  Tokens tokens_;
};

TEST_F(ScorerTest, AContinuationIsScoredAfterItsContext) {
  for (const auto& [context, continuation] :
       {std::pair<std::size_t, std::size_t>{1, 1}, {1, 6}, {4, 3}, {6, 1}, {3, 2}}) {
    const double whole = expected(0, context + continuation - 1);
    EXPECT_NEAR(scorer_.score(ids(0, context), ids(context, continuation)).log_likelihood,
                whole - expected(0, context - 1), 1e-5)
        << context << " + " << continuation;
  }
}

TEST_F(ScorerTest, ALongContextLosesItsFirstTokens) {
  // 8 tokens remain, of which the last 2 are scored.
  EXPECT_NEAR(scorer_.score(ids(0, 12), ids(12, 2)).log_likelihood, expected(6, 7) - expected(6, 5),
              1e-5);
  EXPECT_NEAR(scorer_.score(ids(0, 5), ids(5, 7)).log_likelihood, expected(4, 7), 1e-5);
  EXPECT_THROW(scorer_.score(ids(0, 5), ids(5, 8)), ConfigError);
}

TEST_F(ScorerTest, WhatWasScoredBeforeChangesRoundingOnly) {
  const double alone = scorer_.score(ids(0, 4), ids(4, 3)).log_likelihood;
  scorer_.score(ids(0, 4), ids(9, 2));
  EXPECT_NEAR(scorer_.score(ids(0, 4), ids(4, 3)).log_likelihood, alone, 1e-5);
  scorer_.score(ids(3, 2), ids(5, 1));
  scorer_.restart();
  EXPECT_EQ(scorer_.score(ids(0, 4), ids(4, 3)).log_likelihood, alone);
}

TEST_F(ScorerTest, WindowsOfADocumentFollowEachOther) {
  const std::int32_t before = ids(0, 1)[0];
  EXPECT_NEAR(scorer_.score_document(ids(1, 5), before), expected(0, 5), 1e-5);
  EXPECT_NEAR(scorer_.score_document(ids(1, 7), before), expected(0, 7), 1e-5);
  // Tokens 1 to 7, 8 to 14, and 15 to 16 in a window that begins at token 9.
  EXPECT_NEAR(scorer_.score_document(ids(1, 16), before),
              expected(0, 7) + expected(7, 7) + expected(9, 7) - expected(9, 5), 1e-5);
}

TEST_F(ScorerTest, GreedyTokensAreTheMostLikelyOnes) {
  std::vector<std::int32_t> sequence(ids(0, 3).begin(), ids(0, 3).end());
  for (int i = 0; i < 3; ++i) {
    const std::vector<float> logits = scorer_.next_logits(sequence);
    sequence.push_back(
        static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
  }
  const std::span<const std::int32_t> all = sequence;
  EXPECT_TRUE(scorer_.score(all.first(3), all.last(3)).greedy);
  ++sequence.back();
  EXPECT_FALSE(scorer_.score(all.first(3), all.last(3)).greedy);
}

// A context of 128 Ki tokens does not take the memory of one until it is used.
TEST(ScorerLimits, MemoryGrowsWithTheSequences) {
  ModelConfig config = tiny_llama();
  config.context = 1 << 17;
  TinyModel tiny(config, DType::f32, kernels_named("reference"));
  Scorer scorer(tiny.model, tiny.run, DType::f32, config.context);
  const Tokens tokens(1, 1100, config.vocab, 1);
  const std::span<const std::int32_t> ids = tokens.ids;
  const std::vector<float> few = scorer.next_logits(ids.first(20));
  const std::int64_t row =
      config.layers * config.qkv_width() * static_cast<std::int64_t>(sizeof(float));
  EXPECT_LT(tiny.run.pool().reserved_bytes(), 2048 * row);
  const std::vector<float> many = scorer.next_logits(ids);
  EXPECT_LT(tiny.run.pool().peak_bytes(), config.context * row / 4);
  Scorer fresh(tiny.model, tiny.run, DType::f32, config.context);
  EXPECT_EQ(fresh.next_logits(ids), many);
  scorer.restart();
  EXPECT_EQ(scorer.next_logits(ids.first(20)), few);
}

TEST(ScorerLimits, TheWindowIsWithinTheContext) {
  TinyModel tiny(tiny_gpt2(), DType::f32, kernels_named("reference"));
  EXPECT_THROW(Scorer(tiny.model, tiny.run, DType::f32, tiny_gpt2().context + 1), ConfigError);
}

}  // namespace
}  // namespace trireme
