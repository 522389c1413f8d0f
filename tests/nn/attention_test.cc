// Attention over a few tokens, where the weights are known numbers.
#include "src/nn/attention.h"

#include <cmath>
#include <numbers>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/nn/alibi.h"
#include "tests/nn/layer_fixture.h"

namespace trireme {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

Floats frequencies(std::int64_t head_dim, double theta, const RopeScaling& scaling = {}) {
  DeviceContext context(kernels_named("reference"), 1);
  ModelConfig config;
  config.head_dim = head_dim;
  config.rope_theta = theta;
  config.rope_scaling = scaling;
  return values_of(rope_frequencies(config, context));
}

TEST(RopeFrequencies, FallFromOneToTheBase) {
  EXPECT_THAT(frequencies(8, 10000),
              ElementsAre(FloatNear(1, 1e-7F), FloatNear(1e-1F, 1e-8F), FloatNear(1e-2F, 1e-9F),
                          FloatNear(1e-3F, 1e-10F)));
}

// Wavelengths up to 8192 / 4 stay, those above 8192 / 1 are stretched by 8. The numbers in between
// are those of transformers' _compute_llama3_parameters.
TEST(RopeFrequencies, AreStretchedAsLlama31Is) {
  const Floats plain = frequencies(128, 500000);
  const Floats stretched = frequencies(128, 500000, {8, 1, 4, 8192});
  for (const std::size_t j : {0U, 10U, 28U}) {
    EXPECT_EQ(stretched[j], plain[j]) << j;
  }
  EXPECT_NEAR(stretched[29], 2.166570763503359e-3, 1e-9);
  EXPECT_NEAR(stretched[32], 5.248461609929547e-4, 1e-10);
  for (const std::size_t j : {35U, 36U, 63U}) {
    EXPECT_NEAR(stretched[j] * 8 / plain[j], 1, 1e-6) << j;
  }
}

// The frequency is 1, so its wavelength is 6.28. It lies above, below and between the bounds where
// interpolation begins and ends.
TEST(RopeFrequencies, AreInterpolatedBetweenTheFactors) {
  EXPECT_EQ(frequencies(2, 100, {8, 1, 4, 26}), Floats{1});  // 26 / 4 = 6.5
  EXPECT_EQ(frequencies(2, 100, {8, 1, 4, 6}), Floats{0.125F});
  EXPECT_THAT(frequencies(2, 100, {8, 1, 4, 13}), ElementsAre(FloatNear(0.4367958F, 1e-6F)));
}

TEST(AlibiSlopes, OfARankAreThoseOfItsHeads) {
  DeviceContext context(Device::cpu(), 1);
  ModelConfig config;
  config.heads = 12;
  EXPECT_EQ(values_of(alibi_slopes(config, 7, 3, context)),
            (Floats{alibi_slope(7, 12), alibi_slope(8, 12), alibi_slope(9, 12)}));
}

// Inputs are rows of the identity matrix, so that the packed rows are those of W.
struct Packed {
  LayerFixture layer;
  AttentionHeads heads;
  Linear in;
  Linear out;
  Tensor x;

  // packed: one row of queries, keys and values per token. The output projection is the identity.
  Packed(const AttentionHeads& the_heads, std::int64_t tokens, const Floats& packed)
      : heads(the_heads) {
    in.weight = layer.add("in", {tokens, heads.width()}, packed);
    in.in = tokens;
    in.out = heads.width();
    const std::int64_t width = heads.heads * heads.head_dim;
    out.weight = layer.add("out", {width, width}, identity(width));
    out.in = out.out = width;
    layer.begin();
    x = layer.tensor({1, tokens, tokens}, identity(tokens));
  }
  static Floats identity(std::int64_t n) {
    Floats values(static_cast<std::size_t>(n * n), 0);
    for (std::int64_t i = 0; i < n; ++i) {
      values[static_cast<std::size_t>(i * n + i)] = 1;
    }
    return values;
  }
  Floats forward(Saved& saved, const Tensor& rope = {}, bool lean = false,
                 const Tensor& slopes = {}) {
    return values_of(Attention(heads, in, out, {rope, slopes}, lean).forward(x, saved, layer.run));
  }
  Floats forward() {
    Saved saved;
    return forward(saved);
  }
};

AttentionHeads heads_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t head_dim) {
  AttentionHeads all;
  all.heads = heads;
  all.kv_heads = kv_heads;
  all.head_dim = head_dim;
  return all;
}

TEST(Attention, SeesTheTokensUpToItsOwn) {
  // Queries of zero weigh all keys alike.
  Packed packed(heads_of(1, 1, 2), 3,
                {0, 0, 7, 7, 4, 0,  //
                 0, 0, 1, 5, 0, 2,  //
                 0, 0, 3, 3, 2, 1});
  EXPECT_THAT(packed.forward(), Pointwise(FloatNear(1e-6F), Floats{4, 0, 2, 1, 2, 1}));
}

TEST(Attention, DividesScoresByTheRootOfTheWidth) {
  // The products of the second token's query with the keys are 2 and 0; divided by sqrt(4), they
  // are 1 and 0.
  Packed packed(heads_of(1, 1, 4), 2, {0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0,  //
                                       2, 0, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0});
  const float weight = 0.7310586F;  // e / (e + 1)
  EXPECT_THAT(packed.forward(),
              Pointwise(FloatNear(1e-6F), Floats{1, 0, 0, 0, weight, 1 - weight, 0, 0}));
}

TEST(Attention, GroupsOfQueriesShareKeysAndValues) {
  // Four query heads of width 1, two key-value heads.
  Packed packed(heads_of(4, 2, 1), 2,
                {0, 0, 0, 0, 1, 1, 2, 20,  //
                 0, 0, 0, 0, 1, 1, 4, 40});
  EXPECT_THAT(packed.forward(), Pointwise(FloatNear(1e-5F), Floats{2, 2, 20, 20, 3, 3, 30, 30}));
}

TEST(Attention, RotatesQueriesAndKeysButNotValues) {
  Packed packed(heads_of(1, 1, 2), 2,
                {1, 0, 0, 1, 5, 6,  //
                 1, 0, 0, 1, 7, 8});
  // Each position turns by a quarter of a circle.
  const Tensor rope = packed.layer.tensor({1}, {static_cast<float>(std::numbers::pi / 2)});
  Saved saved;
  (void)packed.forward(saved, rope, true);
  EXPECT_THAT(values_of(saved.pop()), Pointwise(FloatNear(1e-6F), Floats{1, 0, 0, 1, 5, 6,  //
                                                                         0, 1, -1, 0, 7, 8}));
}

DocumentRanges ranges(std::vector<DocumentRange> documents) {
  return std::make_shared<const std::vector<DocumentRange>>(std::move(documents));
}

// Two heads share keys of 0, so that only their slopes of 1 and 2 decide between the values.
TEST(Attention, DistantKeysCountLess) {
  const float a = std::exp(-1.0F);
  const float b = std::exp(-2.0F);
  Packed packed(heads_of(2, 1, 1), 2, {0, 0, 0, 5, 0, 0, 0, 7});
  Saved saved;
  const Tensor slopes = packed.layer.tensor({2}, {1, 2});
  EXPECT_THAT(packed.forward(saved, {}, false, slopes),
              ElementsAre(5, 5, FloatNear((5 * a + 7) / (a + 1), 1e-5F),
                          FloatNear((5 * b + 7) / (b + 1), 1e-5F)));
}

TEST(Attention, DocumentsDoNotSeeEachOther) {
  // Queries of zero weigh all keys alike.
  Packed packed(heads_of(1, 1, 1), 5,
                {0, 7, 4,   //
                 0, 1, 6,   //
                 0, 3, 1,   //
                 0, 2, 10,  //
                 0, 5, 20});
  EXPECT_THAT(packed.forward(), Pointwise(FloatNear(1e-6F), Floats{4, 5, 11.0F / 3, 5.25F, 8.2F}));
  packed.layer.run.documents = ranges({{0, 0, 2}, {0, 2, 1}, {0, 3, 2}});
  EXPECT_THAT(packed.forward(), Pointwise(FloatNear(1e-6F), Floats{4, 5, 1, 10, 15}));
}

TEST(Attention, PositionsStartAnewInEachDocument) {
  Packed packed(heads_of(1, 1, 2), 3,
                {1, 0, 0, 1, 5, 6,  //
                 1, 0, 0, 1, 7, 8,  //
                 1, 0, 0, 1, 7, 8});
  const Tensor rope = packed.layer.tensor({1}, {static_cast<float>(std::numbers::pi / 2)});
  packed.layer.run.documents = ranges({{0, 0, 1}, {0, 1, 2}});
  Saved saved;
  (void)packed.forward(saved, rope, true);
  EXPECT_THAT(values_of(saved.pop()), Pointwise(FloatNear(1e-6F), Floats{1, 0, 0, 1, 5, 6,  //
                                                                         1, 0, 0, 1, 7, 8,  //
                                                                         0, 1, -1, 0, 7, 8}));
}

TEST(Attention, SavesTheHeadsUnlessItIsLean) {
  Packed packed(heads_of(1, 1, 2), 2, Floats(12, 1));
  Saved all;
  (void)packed.forward(all);
  EXPECT_EQ(all.bytes(), 4 * (2 * 6 + 2 * 2 + 2));  // packed rows, heads, and one number per token
  Saved few;
  (void)packed.forward(few, {}, true);
  EXPECT_EQ(few.bytes(), 4 * 2 * 6);
  Saved nothing = Saved::nothing();
  (void)packed.forward(nothing);
  EXPECT_TRUE(nothing.empty());
}

TEST(Attention, DropsWeightsInTrainingAlone) {
  AttentionHeads heads = heads_of(1, 1, 1);
  heads.dropout = 0.5F;
  const std::int64_t tokens = 64;
  Floats rows;
  for (std::int64_t t = 0; t < tokens; ++t) {
    rows.insert(rows.end(), {0, 0, 1});
  }
  Packed packed(heads, tokens, rows);
  EXPECT_THAT(packed.forward(), testing::Each(FloatNear(1, 1e-5F)));
  packed.layer.run.training = true;
  packed.layer.run.dropout = {3, 4};
  const Floats dropped = packed.forward();
  EXPECT_THAT(dropped, testing::Contains(0.0F)) << "the first token has one weight, or none";
  // Each of the last token's 64 weights is 0 or 2 / 64, so their sum deviates from 1 by about 1/8.
  EXPECT_NEAR(dropped.back(), 1, 0.6);
  packed.layer.run.dropout.step = 5;
  EXPECT_NE(packed.forward(), dropped);
}

}  // namespace
}  // namespace trireme
