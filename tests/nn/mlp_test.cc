// The two MLPs with one channel and one hidden unit, computed by hand.
#include "src/nn/mlp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nn/layer_fixture.h"

namespace trireme {
namespace {

using testing::ElementsAre;
using testing::FloatNear;

Linear scale_by(ParameterId weight) {
  Linear linear;
  linear.weight = weight;
  linear.in = linear.out = 1;
  return linear;
}

class MlpTest : public testing::TestWithParam<bool> {
 protected:
  MlpTest()
      : first_(scale_by(layer_.add("first", {1, 1}, {2}))),
        up_(scale_by(layer_.add("up", {1, 1}, {5}))),
        last_(scale_by(layer_.add("last", {1, 1}, {3}))) {
    layer_.begin();
    layer_.run.batch = 1;
    layer_.run.time = 2;
    x_ = layer_.tensor({1, 2, 1}, {1, 0});
  }
  bool lean() const { return GetParam(); }
  // Runs backward of a branch that has just run forward, and returns the gradient of its input.
  Floats backward(const Branch& branch, Saved& saved) {
    const Tensor dy = layer_.tensor({1, 2, 1}, {1, 10});
    const GatheredRows x(x_, layer_.run);
    const Floats dx = values_of(branch.backward(dy, x, saved, layer_.run).dx);
    EXPECT_TRUE(saved.empty());
    return dx;
  }

  LayerFixture layer_;
  Linear first_;
  Linear up_;
  Linear last_;
  Tensor x_;
};

// gelu(2) = 1.9545977, gelu'(2) = 1.0860993 and gelu'(0) = 1/2, in the tanh form.
TEST_P(MlpTest, GeluStandsBetweenTwoProducts) {
  const GeluMlp mlp(first_, last_, lean());
  Saved saved;
  EXPECT_THAT(values_of(mlp.forward(x_, saved, layer_.run)),
              ElementsAre(FloatNear(3 * 1.9545977F, 1e-5F), 0.0F));
  EXPECT_EQ(saved.bytes(), lean() ? 4 * 2 : 4 * 4);
  EXPECT_THAT(backward(mlp, saved), ElementsAre(FloatNear(3 * 2 * 1.0860993F, 1e-5F),
                                                FloatNear(10 * 3 * 2 * 0.5F, 1e-5F)));
  EXPECT_THAT(layer_.gradient(last_.weight), ElementsAre(FloatNear(1.9545977F, 1e-5F)));
  EXPECT_THAT(layer_.gradient(first_.weight), ElementsAre(FloatNear(3 * 1.0860993F, 1e-5F)));
  EXPECT_THAT(layer_.announced, ElementsAre(last_.weight, first_.weight));
}

// silu(2) = 1.7615942, silu'(2) = 1.0907843, silu(0) = 0 and silu'(0) = 1/2.
TEST_P(MlpTest, SwigluMultipliesAGateAndItsInput) {
  const SwigluMlp mlp(first_, up_, last_, lean());
  Saved saved;
  EXPECT_THAT(values_of(mlp.forward(x_, saved, layer_.run)),
              ElementsAre(FloatNear(3 * 1.7615942F * 5, 1e-4F), 0.0F));
  EXPECT_EQ(saved.bytes(), lean() ? 4 * 4 : 4 * 6);
  const float dgate = 3 * 5 * 1.0907843F;
  const float dup = 3 * 1.7615942F;
  EXPECT_THAT(backward(mlp, saved), ElementsAre(FloatNear(2 * dgate + 5 * dup, 1e-4F), 0.0F));
  EXPECT_THAT(layer_.gradient(last_.weight), ElementsAre(FloatNear(5 * 1.7615942F, 1e-4F)));
  EXPECT_THAT(layer_.gradient(up_.weight), ElementsAre(FloatNear(dup, 1e-4F)));
  EXPECT_THAT(layer_.gradient(first_.weight), ElementsAre(FloatNear(dgate, 1e-4F)));
  EXPECT_THAT(layer_.announced, ElementsAre(last_.weight, up_.weight, first_.weight));
}

TEST_P(MlpTest, PutOffWeightsAreThoseOfTheSamePass) {
  WeightGradients later;
  layer_.run.later = &later;
  const SwigluMlp mlp(first_, up_, last_, lean());
  Saved saved;
  (void)mlp.forward(x_, saved, layer_.run);
  (void)backward(mlp, saved);
  EXPECT_EQ(values_of(x_), (Floats{1, 0})) << "its rows are still to be read";
  EXPECT_TRUE(layer_.announced.empty());
  layer_.run.later = nullptr;
  for (const auto& work : later) {
    work(layer_.run);
  }
  EXPECT_THAT(layer_.gradient(last_.weight), ElementsAre(FloatNear(5 * 1.7615942F, 1e-4F)));
  EXPECT_THAT(layer_.gradient(up_.weight), ElementsAre(FloatNear(3 * 1.7615942F, 1e-4F)));
  EXPECT_THAT(layer_.gradient(first_.weight), ElementsAre(FloatNear(15 * 1.0907843F, 1e-4F)));
}

INSTANTIATE_TEST_SUITE_P(Saves, MlpTest, testing::Bool(),
                         [](const auto& each) { return std::string(each.param ? "lean" : "all"); });

}  // namespace
}  // namespace trireme
