#include "src/parallel/gradient_reducer.h"

#include <cmath>
#include <cstring>
#include <numeric>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpi/self_communicator.h"
#include "mpi/thread/thread_world.h"
#include "src/base/philox.h"
#include "tests/parallel/test_parameters.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::vector<std::int64_t> kSizes = {3001, 7, 640, 1, 129, 2000, 33};
constexpr std::int64_t kSmallBucket = 4 * 700;

// Element i of the gradient of parameter id on micro-batch m, in step `step`.
float gradient(int step, std::int64_t m, ParameterId id, std::int64_t i) {
  const std::uint64_t bits = mix64(mix64(static_cast<std::uint64_t>(i * 1000 + m)) ^
                                   static_cast<std::uint64_t>(step * 100 + id));
  return static_cast<float>(
      std::ldexp(static_cast<double>(bits >> 40) * 0x1p-24 - 0.5, static_cast<int>(bits % 12)));
}

// Orders in which backward may hand its gradients over; each is used by all ranks or mixed.
enum class Order { backward, tied, forward, mixed };

std::vector<ParameterId> order_of(Order order, int rank) {
  std::vector<ParameterId> ids(kSizes.size());
  std::iota(ids.begin(), ids.end(), 0);
  if (order == Order::backward || (order == Order::mixed && rank % 2 == 0)) {
    std::reverse(ids.begin(), ids.end());
  } else if (order == Order::tied) {
    std::reverse(ids.begin(), ids.end());
    std::rotate(ids.begin(), ids.begin() + 3, ids.end() - 1);
  }
  return ids;
}

struct Plan {
  std::int64_t micro_batches;
  Reproducibility reproducibility = Reproducibility::elastic;
  Order order = Order::backward;
  std::int64_t bucket_bytes = kSmallBucket;
  int steps = 2;
};

// One rank's life: the summed gradient of the last step, f32 [flat_elements].
std::vector<float> run_rank(Communicator& comm, const Plan& plan) {
  Pool pool{Device{}};
  Stream stream(Device{}, 1);
  const Kernels kernels = adding_kernels();
  const auto store = make_parameters(pool, kSizes);
  GradientReducer reducer(*store, comm, kernels, stream, pool,
                          {plan.micro_batches, plan.reproducibility, plan.bucket_bytes});
  std::vector<float> result;
  for (int step = 0; step < plan.steps; ++step) {
    reducer.begin_step();
    const LeafRange own = reducer.micro_batches();
    for (std::int64_t m = own.lo; m < own.hi; ++m) {
      reducer.begin_micro_batch(m);
      for (const ParameterId id : order_of(plan.order, comm.rank())) {
        const View part = reducer.gradient(id);
        for (std::int64_t i = 0; i < part.count; ++i) {
          as<float>(part)[i] = gradient(step, m, id, i);
        }
        reducer.ready(id);
      }
    }
    const View sum = reducer.finish_step();
    result.assign(as<float>(sum), as<float>(sum) + sum.count);
  }
  return result;
}

// Every rank's result; all have to be the same.
std::vector<float> run_world(int ranks, const Plan& plan) {
  ThreadWorld world(ranks);
  std::vector<std::vector<float>> results(static_cast<std::size_t>(ranks));
  world.run([&](Communicator& comm) {
    comm.set_deadline(std::chrono::seconds(60));
    results[static_cast<std::size_t>(comm.rank())] = run_rank(comm, plan);
  });
  for (const auto& result : results) {
    EXPECT_TRUE(result == results.front());
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

// The canonical tree over the micro-batches, element by element; gaps are zero.
std::vector<float> canonical(const Plan& plan) {
  Pool pool{Device{}};
  const auto store = make_parameters(pool, kSizes);
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
  for (const std::int64_t micro_batches : {4, 8, 12, 20}) {
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

TEST(GradientReducer, AnyOrderOfGradientsAndAnyBuckets) {
  for (const Order order : {Order::tied, Order::forward, Order::mixed}) {
    for (const std::int64_t bytes : {1, 5000, 1 << 20}) {
      const Plan plan{8, Reproducibility::elastic, order, bytes};
      EXPECT_TRUE(run_world(2, plan) == canonical(plan)) << bytes << " bytes a bucket";
    }
  }
}

// One after the other inside a rank, then the tree over the ranks; any number of ranks.
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
  }
}

TEST(GradientReducer, BuffersFollowTheHeightOfTheTree) {
  Pool pool{Device{}};
  Stream stream(Device{}, 1);
  const Kernels kernels = adding_kernels();
  SelfCommunicator comm;
  const auto store = make_parameters(pool, {kSumBlock});
  const auto buffers_used = [&](std::int64_t micro_batches, Reproducibility how) {
    GradientReducer reducer(*store, comm, kernels, stream, pool, {micro_batches, how, 1 << 20});
    reducer.begin_step();
    for (std::int64_t m = 0; m < micro_batches; ++m) {
      reducer.begin_micro_batch(m);
      reducer.ready(0);
    }
    (void)reducer.finish_step();
    return reducer.buffer_bytes() / (kSumBlock * 4);
  };
  EXPECT_EQ(buffers_used(1, Reproducibility::elastic), 1);
  EXPECT_EQ(buffers_used(8, Reproducibility::elastic), 4);
  EXPECT_EQ(buffers_used(6, Reproducibility::elastic), 4);
  EXPECT_EQ(buffers_used(8, Reproducibility::layout), 2);
  EXPECT_EQ(buffers_used(1, Reproducibility::layout), 1);
}

// A communicator that notes when its reductions start and lets them end on demand.
class Recorder : public SelfCommunicator {
 public:
  Pending all_reduce(View data, ReduceOp) override {
    counts.push_back(data.count);
    return {};
  }
  std::vector<std::int64_t> counts;
};

TEST(GradientReducer, ReducesWhileBackwardRuns) {
  Pool pool{Device{}};
  Stream stream(Device{}, 1);
  const Kernels kernels = adding_kernels();
  Recorder comm;
  const auto store = make_parameters(pool, {kSumBlock, kSumBlock, kSumBlock});
  GradientReducer reducer(*store, comm, kernels, stream, pool,
                          {2, Reproducibility::elastic, kSumBlock * 4});
  reducer.begin_step();
  reducer.begin_micro_batch(0);
  for (const ParameterId id : {2, 1, 0}) {
    reducer.ready(id);
  }
  EXPECT_TRUE(comm.counts.empty()) << "only the whole step's sum goes out";
  reducer.begin_micro_batch(1);
  reducer.ready(2);
  EXPECT_EQ(comm.counts.size(), 1U) << "at once";
  reducer.ready(0);
  EXPECT_EQ(comm.counts.size(), 1U) << "in bucket order";
  reducer.ready(1);
  EXPECT_EQ(comm.counts.size(), 3U);
  (void)reducer.finish_step();
}

TEST(GradientReducer, NoticesWhatBackwardForgot) {
  Pool pool{Device{}};
  Stream stream(Device{}, 1);
  const Kernels kernels = adding_kernels();
  SelfCommunicator comm;
  const auto store = make_parameters(pool, {kSumBlock, kSumBlock});
  GradientReducer reducer(*store, comm, kernels, stream, pool, {2});
  EXPECT_THROW(reducer.begin_micro_batch(0), InternalError) << "before begin_step";
  EXPECT_THROW((void)reducer.finish_step(), InternalError) << "before begin_step";
  reducer.begin_step();
  EXPECT_THROW(reducer.begin_micro_batch(1), InternalError) << "out of order";
  reducer.begin_micro_batch(0);
  reducer.ready(1);
  EXPECT_THROW(reducer.ready(1), InternalError) << "twice";
  EXPECT_THROW(reducer.ready(2), InternalError) << "no such parameter";
  try {
    reducer.begin_micro_batch(1);
    FAIL() << "a gradient is missing";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no gradient for p0"));
  }
  EXPECT_THROW((void)reducer.finish_step(), InternalError);
}

// Rank 1 fails in mid-step; rank 0 hears of it and neither waits for its deadline.
TEST(GradientReducer, ErrorsEndTheStepOnAllRanks) {
  ThreadWorld world(2, {"alpha", "beta"});
  std::string heard;
  const auto life = [&](Communicator& comm) {
    Pool pool{Device{}};
    Stream stream(Device{}, 1);
    const Kernels kernels = adding_kernels();
    const auto store = make_parameters(pool, kSizes);
    GradientReducer reducer(*store, comm, kernels, stream, pool,
                            {2, Reproducibility::elastic, kSmallBucket});
    reducer.begin_step();
    reducer.begin_micro_batch(comm.rank());
    for (ParameterId id = store->count() - 1; id >= 0; --id) {
      if (comm.rank() == 1 && id == 2) {
        throw DataError("a flipped byte");
      }
      reducer.ready(id);
    }
    try {
      (void)reducer.finish_step();
    } catch (const CommError& error) {
      heard = error.what();
      throw;
    }
  };
  EXPECT_THROW(world.run(life), DataError);
  EXPECT_THAT(heard, AllOf(HasSubstr("rank 1 (host beta) ended early: a flipped byte"),
                           HasSubstr("rank 0 (host alpha): all_reduce #")));
}

// A reduction that ends when it is waited for, and takes its time.
class SlowReduction : public Pending::Operation {
 public:
  void wait() override { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }
  bool done() override { return false; }
  void abandon() noexcept override {}
};
class SlowCommunicator : public SelfCommunicator {
 public:
  Pending all_reduce(View, ReduceOp) override { return Pending(std::make_shared<SlowReduction>()); }
};

TEST(GradientReducer, CountsTheTimeItWaits) {
  Pool pool{Device{}};
  Stream stream(Device{}, 1);
  const Kernels kernels = adding_kernels();
  SlowCommunicator comm;
  const auto store = make_parameters(pool, {kSumBlock, kSumBlock});
  GradientReducer reducer(*store, comm, kernels, stream, pool,
                          {1, Reproducibility::elastic, kSumBlock * 4});
  reducer.begin_step();
  reducer.begin_micro_batch(0);
  reducer.ready(1);
  reducer.ready(0);
  EXPECT_EQ(reducer.timings().exposed_seconds, 0);
  (void)reducer.finish_step();
  EXPECT_GE(reducer.timings().exposed_seconds, 0.04);
}

}  // namespace
}  // namespace trireme
