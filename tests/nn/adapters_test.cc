// Tests adapters beside frozen products: with small numbers, results are those of the product with
// the sum W + scale B A, and gradients are those of A and B alone.
#include "src/nn/adapters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/nn/linear.h"
#include "tests/nn/layer_fixture.h"

namespace trireme {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

// A product of 3 channels to 4 with frozen W = 0 and bias, and adapters of rank 2 for its first
// column and its last two, which begin with these matrices:
//
//   A1 = [1 0 1; 0 1 0]   B1 = [1 2]            scale 2
//   A2 = [0 1 1; 1 0 0]   B2 = [1 0; 0 1]
class AdaptersTest : public testing::TestWithParam<bool> {
 protected:
  AdaptersTest() {
    linear_.transposed = GetParam();
    linear_.in = 3;
    linear_.out = 4;
    linear_.weight = layer_.add("w", linear_.transposed ? Shape{4, 3} : Shape{3, 4}, Floats(12, 0),
                                LayerFixture::Kind::frozen);
    linear_.bias = layer_.add("bias", {4}, {10, 20, 30, 40}, LayerFixture::Kind::frozen);
    Adapters adapters{.rank = 2, .in = 3, .out = 4, .scale = 2, .transposed = linear_.transposed};
    adapters.a = layer_.add("a1", {2, 3}, {1, 0, 1, 0, 1, 0});
    layer_.add("a2", {2, 3}, {0, 1, 1, 1, 0, 0}, LayerFixture::Kind::joined);
    const ParameterId b1 = layer_.add("b1", linear_.transposed ? Shape{1, 2} : Shape{2, 1}, {1, 2});
    const ParameterId b2 = layer_.add("b2", {2, 2}, {1, 0, 0, 1});
    adapters.slots = {{b1, 0, 1}, {b2, 2, 2}};
    linear_.adapters = adapters;
    layer_.begin();
    x_ = layer_.tensor({1, 2, 3}, {1, 2, 3, -1, 0, 1});
    dy_ = layer_.tensor({1, 2, 4}, {1, 100, 2, 3, -1, 100, 0, 1});
  }
  Tensor zeros(std::int64_t channels) {
    return layer_.tensor({1, 2, channels}, Floats(static_cast<std::size_t>(2 * channels), 0));
  }

  LayerFixture layer_;
  Linear linear_;
  Tensor x_;
  Tensor dy_;
};

// x A1^T = [4 2; 0 0], x A2^T = [5 1; 1 -1].
TEST_P(AdaptersTest, AddToTheirColumns) {
  const Tensor y = zeros(4);
  linear_.forward(x_.view(), y.view(), layer_.run);
  EXPECT_EQ(values_of(y), (Floats{10 + 2 * 8, 20, 30 + 2 * 5, 40 + 2 * 1,  //
                                  10, 20, 30 + 2 * 1, 40 - 2 * 1}));
}

TEST_P(AdaptersTest, AddBeforeGelu) {
  const Tensor y = zeros(4);
  const Tensor before = zeros(4);
  linear_.forward(x_.view(), y.view(), layer_.run, before.view());
  EXPECT_EQ(values_of(before), (Floats{26, 20, 40, 42, 10, 20, 32, 38}));
  EXPECT_THAT(values_of(y), Pointwise(FloatNear(1e-5F), values_of(before)));
}

// 2 dy B: [2 4; -2 -4] for the first slot, [4 6; 0 2] for the second.
TEST_P(AdaptersTest, TheInputsGradientGoesThroughThem) {
  const Tensor dx = layer_.tensor({1, 2, 3}, {100, 100, 100, 100, 100, 100});
  linear_.backward_input(dy_.view(), dx.view(), layer_.run);
  const Floats expected = {2 + 6, 4 + 4, 2 + 4, -2 + 2, -4, -2};
  EXPECT_EQ(values_of(dx), expected);
  linear_.backward_input_add(dy_.view(), dx.view(), layer_.run);
  Floats twice = expected;
  for (float& each : twice) {
    each *= 2;
  }
  EXPECT_EQ(values_of(dx), twice);
  // gelu'(0) = 1/2.
  const Tensor before = zeros(3);
  linear_.backward_input(dy_.view(), dx.view(), layer_.run, before.view());
  for (float& each : twice) {
    each /= 4;
  }
  EXPECT_THAT(values_of(dx), Pointwise(FloatNear(1e-6F), twice));
}

TEST_P(AdaptersTest, HaveGradientsAndWhatIsFrozenHasNone) {
  linear_.backward_weight(dy_.view(), x_.view(), layer_.run);
  linear_.announce(layer_.run);
  const ParameterId a = linear_.adapters.a;
  EXPECT_EQ(layer_.gradient(a), (Floats{2 + 2, 4, 6 - 2, 4 + 4, 8, 12 - 4}));
  EXPECT_EQ(layer_.gradient(a + 1), (Floats{4, 8, 12, 6 - 2, 12, 18 + 2}));
  EXPECT_EQ(layer_.gradient(a + 2), (Floats{8, 4}));
  const Floats of_b2 = GetParam() ? Floats{20, 4, 30 + 2, 6 - 2} : Floats{20, 30 + 2, 4, 6 - 2};
  EXPECT_EQ(layer_.gradient(a + 3), of_b2);
  EXPECT_EQ(layer_.gradient(linear_.weight), Floats(12, 1000)) << "frozen";
  EXPECT_EQ(layer_.gradient(linear_.bias), Floats(4, 1000)) << "frozen";
  EXPECT_THAT(layer_.announced, ElementsAre(a + 3, a + 2, a + 1, a));
}

INSTANTIATE_TEST_SUITE_P(Storage, AdaptersTest, testing::Bool(), [](const auto& each) {
  return std::string(each.param ? "transposed" : "plain");
});

}  // namespace
}  // namespace trireme
