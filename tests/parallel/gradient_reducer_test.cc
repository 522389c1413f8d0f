#include "src/parallel/gradient_reducer.h"

#include <gtest/gtest.h>

#include "mpi/self_communicator.h"
#include "mpi/thread/thread_world.h"
#include "tests/parallel/reducing_rank.h"

namespace trireme {
namespace {

// Returns the bytes of the step that needs most.
std::int64_t bytes_of_all_steps(const ZeroLayout& layout, const Plan& plan) {
  std::int64_t most = 0;
  for (int step = 0; step < plan.steps; ++step) {
    most =
        std::max(most, gradient_bytes(layout, plan.micro_batches_of(step), plan.reproducibility));
  }
  return most;
}

// Runs one rank. Stores its part of the summed gradient of the last step in `all`, f32
// [flat_elements].
void run_rank(Communicator& comm, const Plan& plan, std::vector<float>& all) {
  Rank rank(comm, kSizes, plan);
  for (int step = 0; step < plan.steps; ++step) {
    rank.one_step(step, plan);
  }
  const auto predicted = bytes_of_all_steps(rank.layout, plan);
  EXPECT_LE(rank.reducer.buffer_bytes(), predicted);
  if (plan.open == 1 && plan.order == Order::backward) {
    EXPECT_LE(rank.reducer.peak_buffer_bytes(), predicted);
  }
  for (int b = 0; b < rank.layout.buckets(); ++b) {
    const View sum = rank.reducer.sum(b);
    std::copy(as<float>(sum), as<float>(sum) + sum.count, all.begin() + rank.layout.owned(b).first);
  }
}

// Returns the sums of all ranks together. At level 0 each rank has all sums, which must be equal.
std::vector<float> run_world(int ranks, const Plan& plan) {
  ThreadWorld world(ranks);
  DeviceContext context(Device::cpu(), 1);
  const auto elements =
      static_cast<std::size_t>(declare_parameters(context, kSizes)->flat_elements());
  std::vector<std::vector<float>> results(static_cast<std::size_t>(ranks),
                                          std::vector<float>(elements, 0.0F));
  world.run([&](Communicator& comm) {
    comm.set_deadline(std::chrono::seconds(60));
    run_rank(comm, plan, results[static_cast<std::size_t>(comm.rank())]);
  });
  for (std::size_t r = 1; r < results.size(); ++r) {
    for (std::size_t i = 0; i < elements && plan.level > 0; ++i) {
      results[0][i] += results[r][i];
    }
    EXPECT_TRUE(plan.level > 0 || results[r] == results[0]);
  }
  return results.front();
}

float tree_sum(int step, ParameterId id, std::int64_t i, std::int64_t lo, std::int64_t hi) {
  if (hi - lo == 1) {
    return gradient(step, lo, id, i);
  }
  const std::int64_t mid = (lo + hi) / 2;
  return tree_sum(step, id, i, lo, mid) + tree_sum(step, id, i, mid, hi);
}

// Returns the sums by the canonical tree over the micro-batches; gaps are zero.
std::vector<float> canonical(const Plan& plan) {
  DeviceContext context(Device::cpu(), 1);
  const auto store = declare_parameters(context, kSizes);
  std::vector<float> sums(static_cast<std::size_t>(store->flat_elements()), 0.0F);
  for (ParameterId id = 0; id < store->count(); ++id) {
    for (std::int64_t i = 0; i < (*store)[id].elements(); ++i) {
      sums[static_cast<std::size_t>((*store)[id].offset + i)] =
          tree_sum(plan.steps - 1, id, i, 0, plan.micro_batches);
    }
  }
  return sums;
}

TEST(GradientReducer, EveryDegreeGivesTheBitsOfTheTree) {
  for (const std::int64_t micro_batches : {8, 12, 20}) {
    const Plan plan{micro_batches};
    const std::vector<float> expected = canonical(plan);
    for (const int ranks : {1, 2, 4}) {
      EXPECT_TRUE(run_world(ranks, plan) == expected)
          << micro_batches << " micro-batches on " << ranks << " ranks";
    }
  }
  const Plan six{6};
  EXPECT_TRUE(run_world(1, six) == canonical(six));
  EXPECT_TRUE(run_world(2, six) == canonical(six));
}

TEST(GradientReducer, EveryLevelGivesTheBitsOfTheTree) {
  for (const std::int64_t micro_batches : {8, 12, 16}) {
    Plan plan{micro_batches};
    const std::vector<float> expected = canonical(plan);
    for (plan.level = 1; plan.level <= 3; ++plan.level) {
      for (const int ranks : {1, 2, 4, 8}) {
        if (micro_batches % ranks == 0) {
          EXPECT_TRUE(run_world(ranks, plan) == expected)
              << micro_batches << " micro-batches on " << ranks << " ranks, ZeRO " << plan.level;
        }
      }
    }
  }
}

// The number of micro-batches may change at any step, up or down: each step has the bits of its own
// tree, at every level and on every number of ranks. 6 on 2 ranks are one round of 3 from ZeRO 2 on
// and 8 are four rounds of 1, so that whole gradients and shards take turns.
TEST(GradientReducer, EveryStepHasItsOwnTree) {
  const std::vector<std::int64_t> counts = {4, 8, 12, 20, 8, 6};
  for (const int level : {0, 1, 2, 3}) {
    for (const int ranks : {1, 2, 4}) {
      Plan plan{0, Reproducibility::elastic, Order::backward, kSmallBucket, level};
      plan.counts = counts;
      plan.counts.resize(ranks == 4 ? counts.size() - 1 : counts.size());
      for (plan.steps = 1; plan.steps <= static_cast<int>(plan.counts.size()); ++plan.steps) {
        Plan alone = plan;
        alone.micro_batches = plan.micro_batches_of(plan.steps - 1);
        EXPECT_TRUE(run_world(ranks, plan) == canonical(alone))
            << plan.steps << " steps on " << ranks << " ranks, ZeRO " << level;
      }
    }
  }
}

TEST(GradientReducer, AnyOrderOfGradientsAndAnyBuckets) {
  for (const Order order : {Order::tied, Order::forward}) {
    for (const std::int64_t bytes : {1, 5000, 1 << 20}) {
      for (const int level : {0, 2}) {
        const Plan plan{8, Reproducibility::elastic, order, bytes, level};
        EXPECT_TRUE(run_world(2, plan) == canonical(plan)) << bytes << " bytes a bucket";
      }
    }
  }
}

TEST(GradientReducer, MicroBatchesMayOverlap) {
  for (const std::size_t open : {2, 3, 8}) {
    for (const int level : {0, 1, 2}) {
      const Plan plan{16, Reproducibility::elastic, Order::backward, kSmallBucket, level, open};
      EXPECT_TRUE(run_world(2, plan) == canonical(plan)) << open << " open, ZeRO " << level;
    }
  }
}

// Each rank adds its micro-batches one after the other, then the tree adds the ranks, which may be
// any number.
TEST(GradientReducer, LayoutAddsInOrder) {
  for (const Reproducibility how : {Reproducibility::layout, Reproducibility::fast}) {
    const Plan plan{12, how};
    const std::vector<float> got = run_world(3, plan);
    const auto part = [&](std::int64_t i, int rank) {
      float sum = gradient(plan.steps - 1, rank * 4, 0, i);
      for (std::int64_t m = rank * 4 + 1; m < rank * 4 + 4; ++m) {
        sum += gradient(plan.steps - 1, m, 0, i);
      }
      return sum;
    };
    for (std::int64_t i = 0; i < kSizes[0]; ++i) {
      const float expected = part(i, 0) + (part(i, 1) + part(i, 2));
      ASSERT_EQ(got[static_cast<std::size_t>(i)], expected) << "element " << i;
    }
    EXPECT_TRUE(got == run_world(3, {12, how, Order::backward, kSmallBucket, 1}));
  }
}

// From ZeRO 2 on, the tree adds the ranks first; then the rounds are added one after the other.
TEST(GradientReducer, LayoutAddsRoundsInOrder) {
  const Plan plan{12, Reproducibility::layout, Order::backward, kSmallBucket, 2};
  const std::vector<float> got = run_world(3, plan);
  const auto round = [&](std::int64_t i, std::int64_t m) {
    return gradient(plan.steps - 1, m, 0, i) +
           (gradient(plan.steps - 1, m + 1, 0, i) + gradient(plan.steps - 1, m + 2, 0, i));
  };
  for (std::int64_t i = 0; i < kSizes[0]; ++i) {
    const float expected = ((round(i, 0) + round(i, 3)) + round(i, 6)) + round(i, 9);
    ASSERT_EQ(got[static_cast<std::size_t>(i)], expected) << "element " << i;
  }
}

// peak() returns the peak in units of one bucket's gradient.
TEST(GradientReducer, BuffersFollowTheHeightOfTheTree) {
  SelfCommunicator comm;
  const auto peak = [&](std::int64_t micro_batches, Reproducibility how) {
    const Plan plan{micro_batches, how};
    Rank rank(comm, {kSumBlock}, plan);
    rank.reducer.begin_step(plan.micro_batches);
    for (const std::int64_t m : rank.reducer.micro_batches()) {
      rank.give(rank.reducer.open(m), 0, m, 0);
    }
    rank.reducer.finish_step();
    EXPECT_EQ(rank.reducer.buffer_bytes(), kSumBlock * 4);
    EXPECT_EQ(rank.reducer.peak_buffer_bytes(), gradient_bytes(rank.layout, micro_batches, how));
    return rank.reducer.peak_buffer_bytes() / (kSumBlock * 4);
  };
  EXPECT_EQ(peak(1, Reproducibility::elastic), 1);
  EXPECT_EQ(peak(8, Reproducibility::elastic), 4);
  EXPECT_EQ(peak(6, Reproducibility::elastic), 4);
  EXPECT_EQ(peak(8, Reproducibility::layout), 2);
  EXPECT_EQ(peak(1, Reproducibility::layout), 1);
}

// There are 16 buckets and 16 micro-batches on 4 ranks, so that each rank holds up to three sums
// that wait for others.
TEST(GradientReducer, LevelsHoldWhatTheyPromise) {
  const std::vector<std::int64_t> sizes(16, 4 * kSumBlock);
  constexpr std::int64_t kBucket = 4 * kSumBlock * 4;  // bytes
  const auto peak = [&](int level) {
    ThreadWorld world(4);
    std::vector<std::int64_t> peaks(4);
    world.run([&](Communicator& comm) {
      Plan plan{16, Reproducibility::elastic, Order::backward, kBucket, level};
      Rank rank(comm, sizes, plan);
      rank.reducer.begin_step(plan.micro_batches);
      for (const std::int64_t m : rank.reducer.micro_batches()) {
        GradientSink& sink = rank.reducer.open(m);
        for (ParameterId id = rank.store->count() - 1; id >= 0; --id) {
          rank.give(sink, 0, m, id);
        }
      }
      rank.reducer.finish_step();
      EXPECT_EQ(rank.reducer.buffer_bytes(), 16 * kBucket / (level < 2 ? 1 : 4));
      peaks[static_cast<std::size_t>(comm.rank())] = rank.reducer.peak_buffer_bytes();
      EXPECT_LE(rank.reducer.peak_buffer_bytes(),
                gradient_bytes(rank.layout, 16, Reproducibility::elastic));
    });
    return *std::max_element(peaks.begin(), peaks.end());
  };
  EXPECT_EQ(peak(0), 2 * 16 * kBucket + kBucket);
  EXPECT_LE(peak(1), 2 * 16 * kBucket + kBucket);
  for (const int level : {2, 3}) {
    EXPECT_LE(peak(level), 2 * 16 * kBucket / 4 + 5 * kBucket);
  }
}

}  // namespace
}  // namespace trireme
