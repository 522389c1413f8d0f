#include "src/parallel/zero_state.h"

#include "mpi/self_communicator.h"
#include "mpi/thread/thread_world.h"
#include "tests/parallel/test_parameters.h"
#include "tests/parallel/zero_run.h"

namespace trireme {
namespace {

ZeroOutcome run_world(int ranks, const ZeroPlan& plan) {
  ThreadWorld world(ranks);
  std::vector<ZeroOutcome> outcomes(static_cast<std::size_t>(ranks));
  world.run([&](Communicator& dp) {
    dp.set_deadline(std::chrono::seconds(120));
    outcomes[static_cast<std::size_t>(dp.rank())] = ZeroRun(dp, plan).run();
  });
  for (const ZeroOutcome& outcome : outcomes) {
    EXPECT_TRUE(outcome == outcomes.front());
  }
  return outcomes.front();
}

class ZeroTest : public testing::TestWithParam<DType> {};

TEST_P(ZeroTest, EveryLevelAndDegreeGivesTheSameBits) {
  for (const std::int64_t micro_batches : {8, 16}) {
    ZeroPlan plan{.micro_batches = micro_batches, .compute = GetParam(), .steps = 2};
    const ZeroOutcome expected = run_world(1, plan);
    EXPECT_GT(expected.norms.back(), 0);
    // From level 2 on, more micro-batches make more rounds.
    for (plan.level = micro_batches == 8 ? 0 : 2; plan.level <= 3; ++plan.level) {
      for (const int ranks : {2, 4, 8}) {
        EXPECT_TRUE(run_world(ranks, plan) == expected)
            << "ZeRO " << plan.level << " on " << ranks << " ranks";
      }
    }
  }
}

TEST_P(ZeroTest, BucketsDoNotMatter) {
  ZeroPlan plan{.compute = GetParam(), .steps = 2};
  const ZeroOutcome expected = run_world(1, plan);
  for (plan.level = 0; plan.level <= 3; ++plan.level) {
    for (plan.bucket_bytes = 1; plan.bucket_bytes <= 1 << 24; plan.bucket_bytes <<= 12) {
      for (plan.borders = false;; plan.borders = true) {
        EXPECT_TRUE(run_world(2, plan) == expected)
            << "ZeRO " << plan.level << ", " << plan.bucket_bytes << " bytes a bucket";
        if (plan.borders) {
          break;
        }
      }
    }
  }
}

// If the number of micro-batches per rank is odd, there are fewer rounds, down to one.
TEST_P(ZeroTest, OddNumbersOfMicroBatches) {
  for (const std::int64_t micro_batches : {12, 20}) {
    ZeroPlan plan{.micro_batches = micro_batches, .compute = GetParam(), .steps = 2};
    const ZeroOutcome expected = run_world(1, plan);
    for (plan.level = 1; plan.level <= 3; ++plan.level) {
      for (const int ranks : {2, 4}) {
        EXPECT_TRUE(run_world(ranks, plan) == expected);
      }
    }
  }
}

TEST_P(ZeroTest, LayoutTakesAnyDegreeAndRepeatsItself) {
  ZeroPlan plan{.micro_batches = 12,
                .reproducibility = Reproducibility::layout,
                .compute = GetParam(),
                .steps = 2};
  for (plan.level = 0; plan.level <= 3; ++plan.level) {
    const ZeroOutcome once = run_world(3, plan);
    EXPECT_TRUE(run_world(3, plan) == once) << "ZeRO " << plan.level;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ZeroTest, testing::Values(DType::f32, DType::bf16),
                         [](const auto& each) {
                           return each.param == DType::f32 ? "f32" : "bf16";
                         });

// There are eight layers of one bucket each on four ranks.
TEST(ZeroMemory, LevelsHoldWhatTheyPromise) {
  constexpr std::int64_t kLayer = 8 * kSumBlock;
  constexpr std::int64_t kAll = 8 * kLayer;
  for (int level = 0; level <= 3; ++level) {
    ThreadWorld world(4);
    world.run([&](Communicator& dp) {
      DeviceContext context(Device::cpu(), 1);
      const auto store =
          declare_parameters(context, std::vector<std::int64_t>(8, kLayer), DType::bf16);
      ZeroState state(*store, {dp, context},
                      {.level = level, .bucket_bytes = kLayer * 4, .borders = {}, .optimizer = {}});
      state.initialize(1);
      EXPECT_EQ(state.masters().elements(), level == 0 ? kAll : kAll / 4);
      EXPECT_EQ(state.layout().owned_elements(), state.masters().elements());
      ZeroParameters& parameters = state.parameters();
      EXPECT_EQ(parameters.bytes(), level < 3 ? kAll * 2 : kAll * 2 / 4);
      for (ParameterId id = 0; id < 8; ++id) {
        parameters.need(id, id + 1);
        if (id < 7) {
          parameters.prefetch(id + 1, id + 2);
        }
        parameters.release(id, id + 1);
      }
      EXPECT_EQ(parameters.bytes(), level < 3 ? kAll * 2 : kAll * 2 / 4);
      EXPECT_EQ(parameters.peak_bytes(), level < 3 ? kAll * 2 : kAll * 2 / 4 + 2 * kLayer * 2);
    });
  }
}

TEST(ZeroParameters, AreThereOnlyWhileNeeded) {
  ThreadWorld world(2);
  world.run([&](Communicator& dp) {
    DeviceContext context(Device::cpu(), 1);
    const auto store = declare_parameters(context, {5000, 10, 5000});
    ZeroState state(*store, {dp, context},
                    {.level = 3, .bucket_bytes = 4, .borders = {}, .optimizer = {}});
    ZeroParameters& parameters = state.parameters();
    EXPECT_THROW((void)store->compute(0), InternalError);
    parameters.need(0, 2);
    EXPECT_EQ(store->compute(1).count, 10);
    EXPECT_THROW((void)store->compute(2), InternalError);
    parameters.need(1, 3);
    parameters.release(0, 2);
    EXPECT_EQ(store->compute(1).count, 10) << "still needed";
    EXPECT_THROW((void)store->compute(0), InternalError);
    EXPECT_THROW(parameters.publish(state.layout().bucket_of(1)), InternalError) << "in use";
    parameters.prefetch(1, 2);
    parameters.release(1, 3);
    EXPECT_THROW((void)store->compute(2), InternalError);
    const int wanted = state.layout().bucket_of(1);
    EXPECT_EQ(parameters.bytes(), (state.layout().block(0) * 3 + state.layout().padded(wanted)) * 4)
        << "what was prefetched stays";
    EXPECT_THROW(parameters.release(2, 3), InternalError) << "once too often";
    parameters.need(1, 2);
    EXPECT_EQ(store->compute(1).count, 10);
    parameters.release(1, 2);
    EXPECT_EQ(parameters.bytes(), state.layout().block(0) * 4 * 3);
  });
}

// If one rank fails, the others get an error, and no buffer remains in use.
TEST(ZeroState, ErrorsEndTheStepOnAllRanks) {
  for (const int level : {1, 2, 3}) {
    ThreadWorld world(2, {"alpha", "beta"});
    const auto life = [&](Communicator& dp) {
      DeviceContext context(Device::cpu(), 1);
      const auto store = declare_parameters(context, {50000, 10, 50000});
      ZeroState state(*store, {dp, context},
                      {.level = level, .bucket_bytes = 4, .borders = {}, .optimizer = {}});
      state.initialize(1);
      state.parameters().prefetch(0, 1);
      if (dp.rank() == 1) {
        throw DataError("a flipped byte");
      }
      state.parameters().publish(0);
      state.parameters().need(0, 3);
      state.parameters().settle();
      (void)all_reduce_value(dp, 1.0, ReduceOp::sum);
    };
    EXPECT_THROW(world.run(life), DataError);
  }
}

TEST(ZeroState, AloneThereIsNothingToShare) {
  SelfCommunicator alone;
  DeviceContext context(Device::cpu(), 1);
  const auto store = declare_parameters(context, {5000});
  ZeroState state(*store, {alone, context}, {.level = 3, .borders = {}, .optimizer = {}});
  EXPECT_EQ(state.layout().level(), 0);
  EXPECT_EQ(store->compute(0).count, 5000);
}

}  // namespace
}  // namespace trireme
