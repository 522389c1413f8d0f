// Tests norms of two channels, with an epsilon that makes every number exact.
#include "src/nn/norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nn/layer_fixture.h"

namespace trireme {
namespace {

using testing::ElementsAre;

// The row [1, 3] has mean 2 and variance 1, and with an epsilon of 3 a deviation of 2.
class LayerNormTest : public testing::Test {
 protected:
  LayerNormTest() {
    norm_.weight = layer_.add("w", {2}, {2, 4});
    norm_.bias = layer_.add("b", {2}, {10, 20});
    norm_.epsilon = 3;
    layer_.begin();
    layer_.run.batch = 1;
    layer_.run.time = 1;
  }
  Norm::Result forward() {
    Residual stream{layer_.tensor({1, 1, 2}, {1, 3}), {}};
    return norm_.forward(stream, layer_.run);
  }

  LayerFixture layer_;
  Norm norm_;
};

TEST_F(LayerNormTest, ScalesAndShiftsDeviationsFromTheMean) {
  const Norm::Result result = forward();
  EXPECT_EQ(values_of(result.y), (Floats{9, 22}));
  EXPECT_EQ(values_of(result.kept.mean), Floats{2});
  EXPECT_EQ(values_of(result.kept.rstd), Floats{0.5F});
  EXPECT_EQ(values_of(norm_.again(result.kept, layer_.run)), (Floats{9, 22}));
}

TEST_F(LayerNormTest, AddsWhatTheBranchBeforeLeft) {
  Residual stream{layer_.tensor({1, 1, 2}, {5, -4}), layer_.tensor({1, 1, 2}, {-4, 7})};
  const void* const place = stream.delta.view().data;
  const Norm::Result result = norm_.forward(stream, layer_.run);
  EXPECT_EQ(values_of(result.y), (Floats{9, 22}));
  EXPECT_TRUE(stream.delta.empty());
  EXPECT_EQ(stream.x.view().data, place);
  EXPECT_EQ(values_of(stream.x), (Floats{1, 3}));
  EXPECT_EQ(values_of(result.kept.x), (Floats{1, 3})) << "backward needs the sum";
}

TEST_F(LayerNormTest, WhatIsKeptComesBackFromTheStack) {
  const Norm::Kept kept = forward().kept;
  Saved saved;
  kept.push(saved);
  EXPECT_EQ(saved.bytes(), 4 * (2 + 1 + 1));
  const Norm::Kept back = norm_.pop(saved);
  EXPECT_TRUE(saved.empty());
  EXPECT_EQ(back.x.view().data, kept.x.view().data);
  EXPECT_EQ(back.mean.view().data, kept.mean.view().data);
  EXPECT_EQ(back.rstd.view().data, kept.rstd.view().data);
}

TEST_F(LayerNormTest, BackwardReplacesTheGradientOfTheStream) {
  const Norm::Kept kept = forward().kept;
  const Tensor dy = layer_.tensor({1, 1, 2}, {1, 1});
  const Tensor around = layer_.tensor({1, 1, 2}, {8, 8});
  const Tensor dx = norm_.backward(dy, around, kept, layer_.run);
  EXPECT_EQ(dx.view().data, around.view().data);
  EXPECT_EQ(values_of(dx), (Floats{8 - 0.375F, 8 + 0.375F}));
  EXPECT_EQ(layer_.gradient(norm_.weight), (Floats{-0.5F, 0.5F}));
  EXPECT_EQ(layer_.gradient(norm_.bias), (Floats{1, 1}));
  EXPECT_THAT(layer_.announced, ElementsAre(norm_.bias, norm_.weight));
}

TEST_F(LayerNormTest, BackwardOfTheLastNormHasNoStreamAround) {
  const Norm::Kept kept = forward().kept;
  const Tensor dy = layer_.tensor({1, 1, 2}, {1, 1});
  const Tensor dx = norm_.backward(dy, {}, kept, layer_.run);
  EXPECT_EQ(dx.view().data, dy.view().data);
  EXPECT_EQ(values_of(dx), (Floats{-0.375F, 0.375F}));
}

TEST_F(LayerNormTest, PutsTheGradientsOfItsParametersOff) {
  const Norm::Kept kept = forward().kept;
  WeightGradients later;
  layer_.run.later = &later;
  const Tensor dy = layer_.tensor({1, 1, 2}, {1, 1});
  const Tensor around = layer_.tensor({1, 1, 2}, {8, 8});
  const Tensor dx = norm_.backward(dy, around, kept, layer_.run);
  EXPECT_EQ(values_of(dx), (Floats{8 - 0.375F, 8 + 0.375F}));
  EXPECT_EQ(values_of(dy), (Floats{1, 1})) << "other weight gradients still read it";
  EXPECT_EQ(values_of(around), (Floats{8, 8}));
  EXPECT_EQ(layer_.gradient(norm_.weight), (Floats{1000, 1000}));
  EXPECT_TRUE(layer_.announced.empty());
  layer_.run.later = nullptr;
  ASSERT_EQ(later.size(), 1U);
  later.front()(layer_.run);
  EXPECT_EQ(layer_.gradient(norm_.weight), (Floats{-0.5F, 0.5F}));
  EXPECT_EQ(layer_.gradient(norm_.bias), (Floats{1, 1}));
  EXPECT_THAT(layer_.announced, ElementsAre(norm_.bias, norm_.weight));
}

// Rows [0, 2] and [2, 0] have a mean square of 2, which an epsilon of 2 makes 4.
TEST(RmsNorm, DividesByTheRootOfTheMeanSquare) {
  LayerFixture layer;
  Norm norm;
  norm.weight = layer.add("w", {2}, {3, 5});
  norm.epsilon = 2;
  layer.begin();
  Residual stream{layer.tensor({1, 2, 2}, {0, 2, 2, 0}), {}};
  const Norm::Result result = norm.forward(stream, layer.run);
  EXPECT_EQ(values_of(result.y), (Floats{0, 5, 3, 0}));
  EXPECT_TRUE(result.kept.mean.empty());
  EXPECT_EQ(values_of(result.kept.rstd), (Floats{0.5F, 0.5F}));
  Saved saved;
  result.kept.push(saved);
  EXPECT_EQ(saved.bytes(), 4 * (4 + 2));
  const Norm::Kept back = norm.pop(saved);
  EXPECT_TRUE(back.mean.empty());
  EXPECT_TRUE(saved.empty());
  // dweight sums dy x rstd over the rows.
  const Tensor dy = layer.tensor({1, 2, 2}, {7, 1, 2, 9});
  (void)norm.backward(dy, {}, back, layer.run);
  EXPECT_EQ(layer.gradient(norm.weight), (Floats{2, 1}));
  EXPECT_THAT(layer.announced, ElementsAre(norm.weight));
}

}  // namespace
}  // namespace trireme
