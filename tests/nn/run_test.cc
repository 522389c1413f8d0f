// Tests Run, the state of one pass through the model: which gradients of weights it leaves for
// later, and which tensors it keeps for the backward pass.
#include "src/nn/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/nn/saved.h"
#include "tests/nn/layer_fixture.h"

namespace trireme {
namespace {

using testing::ElementsAre;

class RunTest : public testing::Test {
 protected:
  void queue(int number) {
    layer_.run.weight_gradient([this, number](trireme::Run&) { done_.push_back(number); });
  }
  LayerFixture layer_;
  std::vector<int> done_;
};

TEST_F(RunTest, WeightGradientsAreComputedAtOnce) {
  EXPECT_FALSE(layer_.run.puts_off_weights());
  queue(1);
  EXPECT_THAT(done_, ElementsAre(1));
}

TEST_F(RunTest, WaitingOnesAreWorkedOffFromTheOldest) {
  WeightGradients waiting;
  layer_.run.waiting = &waiting;
  EXPECT_TRUE(layer_.run.puts_off_weights());
  for (const int number : {1, 2, 3}) {
    queue(number);
  }
  EXPECT_TRUE(done_.empty());
  layer_.run.work_off(1);
  EXPECT_THAT(done_, ElementsAre(1, 2));
  layer_.run.work_off(1);
  EXPECT_THAT(done_, ElementsAre(1, 2)) << "one stays";
  layer_.run.work_off();
  EXPECT_THAT(done_, ElementsAre(1, 2, 3));
}

// The zero-bubble schedule itself decides when this work runs, so work_off() leaves it alone.
TEST_F(RunTest, LaterGoesBeforeWaiting) {
  WeightGradients waiting;
  WeightGradients later;
  layer_.run.waiting = &waiting;
  layer_.run.later = &later;
  queue(1);
  layer_.run.work_off();
  EXPECT_TRUE(done_.empty());
  EXPECT_TRUE(waiting.empty());
  ASSERT_EQ(later.size(), 1U);
  later.front()(layer_.run);
  EXPECT_THAT(done_, ElementsAre(1));
}

TEST_F(RunTest, WorkThatQueuesMoreIsWorkedOffToo) {
  WeightGradients waiting;
  layer_.run.waiting = &waiting;
  layer_.run.weight_gradient([this](trireme::Run& then) {
    done_.push_back(1);
    then.weight_gradient([this](trireme::Run&) { done_.push_back(2); });
  });
  layer_.run.work_off();
  EXPECT_THAT(done_, ElementsAre(1, 2));
}

TEST_F(RunTest, WithoutAGroupNothingIsShared) {
  layer_.run.sequence_parallel = true;
  EXPECT_TRUE(layer_.run.alone());
  EXPECT_FALSE(layer_.run.shares_rows());
  EXPECT_EQ(&layer_.run.shared_pool(), &layer_.run.pool());
}

TEST_F(RunTest, SavedTensorsComeBackInReverse) {
  Saved saved;
  const Tensor a = layer_.tensor({2}, {1, 2});
  const Tensor b = layer_.tensor({3}, {3, 4, 5});
  saved.push(a);
  saved.push({});
  saved.push(b);
  EXPECT_EQ(saved.bytes(), 20);
  EXPECT_EQ(saved.pop().view().data, b.view().data);
  EXPECT_EQ(saved.bytes(), 8);
  EXPECT_TRUE(saved.pop().empty());
  EXPECT_EQ(saved.pop().view().data, a.view().data);
  EXPECT_EQ(saved.bytes(), 0);
  EXPECT_THROW((void)saved.pop(), InternalError);
}

TEST_F(RunTest, APassWithoutBackwardSavesNothing) {
  Saved nothing = Saved::nothing();
  EXPECT_FALSE(nothing.keeps());
  const std::int64_t before = layer_.context.activations().peak_bytes();
  {
    const Tensor a = layer_.tensor({1000}, Floats(1000, 1));
    nothing.push(a);
  }
  {
    const Tensor b = layer_.tensor({1000}, Floats(1000, 1));
    nothing.push(b);
  }
  EXPECT_TRUE(nothing.empty());
  EXPECT_LT(layer_.context.activations().peak_bytes() - before, 2 * 4000)
      << "the first tensor was given back before the second was taken";
}

}  // namespace
}  // namespace trireme
