// Products of small integers, whose results are exact and computed by hand.
#include "src/nn/linear.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nn/layer_fixture.h"

namespace trireme {
namespace {

using testing::ElementsAre;
using testing::FloatNear;

// y = x W + bias of two rows, with W = [1 2; 3 4; 5 6] stored either way.
class LinearTest : public testing::TestWithParam<bool> {
 protected:
  LinearTest() {
    linear_.transposed = GetParam();
    linear_.in = 3;
    linear_.out = 2;
    linear_.weight = linear_.transposed ? layer_.add("w", {2, 3}, {1, 3, 5, 2, 4, 6})
                                        : layer_.add("w", {3, 2}, {1, 2, 3, 4, 5, 6});
    linear_.bias = layer_.add("b", {2}, {10, 20});
    layer_.begin();
    x_ = layer_.tensor({1, 2, 3}, {1, 0, -1, 2, 1, 0});
    dy_ = layer_.tensor({1, 2, 2}, {1, 2, 3, -1});
  }
  Floats weight_gradient() { return layer_.gradient(linear_.weight); }
  Floats expected_gradient() const {
    return GetParam() ? Floats{7, 3, -1, 0, -1, -2} : Floats{7, 0, 3, -1, -1, -2};
  }

  LayerFixture layer_;
  Linear linear_;
  Tensor x_;
  Tensor dy_;
};

TEST_P(LinearTest, MultipliesRowsAndAddsTheBias) {
  const Tensor y = layer_.tensor({1, 2, 2}, {0, 0, 0, 0});
  linear_.forward(x_.view(), y.view(), layer_.run);
  EXPECT_EQ(values_of(y), (Floats{6, 16, 15, 28}));
  // If ranks share a product, only one of them adds the bias.
  linear_.adds_bias = false;
  linear_.forward(x_.view(), y.view(), layer_.run);
  EXPECT_EQ(values_of(y), (Floats{-4, -4, 5, 8}));
}

TEST_P(LinearTest, GivesGeluWithTheValuesBeforeIt) {
  const Tensor y = layer_.tensor({1, 2, 2}, {0, 0, 0, 0});
  const Tensor before = layer_.tensor({1, 2, 2}, {0, 0, 0, 0});
  const Tensor x = layer_.tensor({1, 2, 3}, {-10, 1, -1, -9, 0, 0});
  linear_.forward(x.view(), y.view(), layer_.run, before.view());
  EXPECT_EQ(values_of(before), (Floats{-2, -2, 1, 2}));
  // torch.nn.functional.gelu(x, approximate="tanh")
  EXPECT_THAT(values_of(y),
              ElementsAre(FloatNear(-0.0454023F, 1e-6F), FloatNear(-0.0454023F, 1e-6F),
                          FloatNear(0.8411920F, 1e-6F), FloatNear(1.9545977F, 1e-6F)));
}

TEST_P(LinearTest, GradientsOfWeightsAreProductsOfRows) {
  linear_.backward_weight(dy_.view(), x_.view(), layer_.run);
  EXPECT_EQ(weight_gradient(), expected_gradient());
  EXPECT_EQ(layer_.gradient(linear_.bias), (Floats{4, 1}));
  EXPECT_TRUE(layer_.announced.empty()) << "more chunks of rows may follow";
}

// The gradient of the bias needs all rows, so it is computed once, after the last chunk of rows.
TEST_P(LinearTest, AccumulatesTheMatrixButNotTheBias) {
  linear_.adds_bias = false;
  linear_.backward_weight(dy_.view(), x_.view(), layer_.run);
  linear_.backward_weight(dy_.view(), x_.view(), layer_.run, true);
  Floats twice = expected_gradient();
  for (float& each : twice) {
    each *= 2;
  }
  EXPECT_EQ(weight_gradient(), twice);
  EXPECT_EQ(layer_.gradient(linear_.bias), (Floats{4, 1}));
}

TEST_P(LinearTest, GradientsOfTheInputReplaceOrAdd) {
  const Tensor dx = layer_.tensor({1, 2, 3}, {100, 100, 100, 100, 100, 100});
  linear_.backward_input_add(dy_.view(), dx.view(), layer_.run);
  EXPECT_EQ(values_of(dx), (Floats{105, 111, 117, 101, 105, 109}));
  linear_.backward_input(dy_.view(), dx.view(), layer_.run);
  EXPECT_EQ(values_of(dx), (Floats{5, 11, 17, 1, 5, 9}));
  // gelu'(0) = 1/2.
  const Tensor before = layer_.tensor({1, 2, 3}, {0, 0, 0, 0, 0, 0});
  linear_.backward_input(dy_.view(), dx.view(), layer_.run, before.view());
  EXPECT_THAT(values_of(dx),
              testing::Pointwise(FloatNear(1e-6F), Floats{2.5F, 5.5F, 8.5F, 0.5F, 2.5F, 4.5F}));
}

TEST_P(LinearTest, AloneTheInputsGradientTakesItsPlace) {
  const void* const place = x_.view().data;
  layer_.run.batch = 1;
  layer_.run.time = 2;
  const BranchGradient gradient =
      linear_.backward_entry(dy_, GatheredRows(x_, layer_.run), layer_.run);
  EXPECT_EQ(gradient.dx.view().data, place);
  EXPECT_EQ(gradient.sum, 0);
  EXPECT_EQ(values_of(gradient.dx), (Floats{5, 11, 17, 1, 5, 9}));
  EXPECT_EQ(weight_gradient(), expected_gradient()) << "computed before x was overwritten";
  EXPECT_THAT(layer_.announced, ElementsAre(linear_.bias, linear_.weight));
}

TEST_P(LinearTest, PutOffWeightsStillSeeTheirInput) {
  WeightGradients later;
  layer_.run.batch = 1;
  layer_.run.time = 2;
  layer_.run.later = &later;
  const BranchGradient gradient =
      linear_.backward_entry(dy_, GatheredRows(x_, layer_.run), layer_.run);
  EXPECT_NE(gradient.dx.view().data, x_.view().data);
  EXPECT_EQ(values_of(gradient.dx), (Floats{5, 11, 17, 1, 5, 9}));
  EXPECT_EQ(weight_gradient(), Floats(6, 1000)) << "put off";
  EXPECT_TRUE(layer_.announced.empty());
  layer_.run.later = nullptr;
  for (const auto& work : later) {
    work(layer_.run);
  }
  EXPECT_EQ(weight_gradient(), expected_gradient());
  EXPECT_THAT(layer_.announced, ElementsAre(linear_.bias, linear_.weight));
}

INSTANTIATE_TEST_SUITE_P(Storage, LinearTest, testing::Bool(), [](const auto& each) {
  return std::string(each.param ? "transposed" : "plain");
});

// Queries, keys and values are three parameters of one product, without gaps between them.
TEST(JoinedLinear, IsOneMatrix) {
  LayerFixture layer;
  Linear linear;
  linear.weight = layer.add("q", {2, 2}, {1, 0, 0, 1});
  layer.add("k", {1, 2}, {5, 7}, LayerFixture::Kind::joined);
  layer.add("v", {1, 2}, {-1, 1}, LayerFixture::Kind::joined);
  linear.weights = 3;
  linear.in = 2;
  linear.out = 4;
  linear.transposed = true;
  layer.begin();
  const Tensor x = layer.tensor({1, 1, 2}, {2, 3});
  const Tensor y = layer.tensor({1, 1, 4}, {0, 0, 0, 0});
  linear.forward(x.view(), y.view(), layer.run);
  EXPECT_EQ(values_of(y), (Floats{2, 3, 31, 1}));
  const Tensor dy = layer.tensor({1, 1, 4}, {1, 2, 3, 4});
  linear.backward_weight(dy.view(), x.view(), layer.run);
  EXPECT_EQ(layer.gradient(0), (Floats{2, 3, 4, 6}));
  EXPECT_EQ(layer.gradient(1), (Floats{6, 9}));
  EXPECT_EQ(layer.gradient(2), (Floats{8, 12}));
  linear.announce(layer.run);
  EXPECT_THAT(layer.announced, ElementsAre(2, 1, 0));
}

}  // namespace
}  // namespace trireme
