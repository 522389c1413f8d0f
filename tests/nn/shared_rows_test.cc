// Tests ranks that share the rows of the stream: the rows of each, and those of all together. Ranks
// are threads.
#include "src/nn/shared_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpi/thread/thread_world.h"
#include "src/compute/kernel_choice.h"
#include "src/nn/residual_layer.h"
#include "src/parallel/tensor_ranks.h"

namespace trireme {
namespace {

using Floats = std::vector<float>;

Floats values_in(const Tensor& tensor) {
  const auto* x = as<float>(tensor.view());
  return Floats(x, x + tensor.elements());
}

// One rank of a group, with a Run.
struct GroupRank {
  DeviceContext context;
  ParameterStore store;
  TensorRanks group;
  Run run;

  GroupRank(Communicator& comm, bool shares_rows, std::int64_t batch, std::int64_t time)
      : context(kernels_named("reference"), 1, comm.memory()),
        store(context, DType::f32),
        group(comm, context),
        run{context, store} {
    comm.set_deadline(std::chrono::seconds(60));
    run.group = &group;
    run.sequence_parallel = shares_rows;
    run.batch = batch;
    run.time = time;
  }
  Tensor tensor(const Shape& shape, const Floats& values) {
    Tensor tensor(group.pool(), shape, DType::f32);
    std::copy(values.begin(), values.end(), as<float>(tensor.view()));
    return tensor;
  }
};

TEST(SharedRows, AreGatheredInTheOrderOfTheRanks) {
  ThreadWorld(2).run([](Communicator& comm) {
    GroupRank rank(comm, true, 2, 2);
    const float r = static_cast<float>(10 * comm.rank());
    const GatheredRows rows(rank.tensor({1, 2, 2}, {r, r + 1, r + 2, r + 3}), rank.run);
    rows.start(rank.run);
    rows.start(rank.run);  // has no further effect
    const Tensor whole = rows.whole(rank.run);
    EXPECT_EQ(whole.shape(), (Shape{2, 2, 2}));
    EXPECT_EQ(values_in(whole), (Floats{0, 1, 2, 3, 10, 11, 12, 13}));
    const GatheredRows copy = rows;
    EXPECT_EQ(copy.whole(rank.run).view().data, whole.view().data) << "gathered once";
  });
}

TEST(SharedRows, AreGatheredWhenTheirWeightGradientsAre) {
  ThreadWorld(2).run([](Communicator& comm) {
    GroupRank rank(comm, true, 1, 2);
    WeightGradients later;
    rank.run.later = &later;
    const GatheredRows rows(rank.tensor({1, 1, 1}, {static_cast<float>(comm.rank())}), rank.run);
    rows.start_for_weights(rank.run);
    ASSERT_EQ(later.size(), 1U);
    rank.run.later = nullptr;
    later.front()(rank.run);
    EXPECT_EQ(values_in(rows.whole(rank.run)), (Floats{0, 1}));
    // If weight gradients are not postponed, the gather starts at once.
    const GatheredRows now(rank.tensor({1, 1, 1}, {static_cast<float>(comm.rank())}), rank.run);
    now.start_for_weights(rank.run);
    EXPECT_EQ(later.size(), 1U);
    EXPECT_EQ(values_in(now.whole(rank.run)), (Floats{0, 1}));
  });
}

TEST(SharedRows, WholeWorksOffWhatWaitsOnlyIfItHasToGather) {
  ThreadWorld(2).run([](Communicator& comm) {
    GroupRank rank(comm, true, 1, 2);
    WeightGradients waiting;
    rank.run.waiting = &waiting;
    int done = 0;
    const auto wait = [&] { waiting.emplace_back([&](trireme::Run&) { ++done; }); };
    wait();
    const GatheredRows rows(rank.tensor({1, 1, 1}, {1}), rank.run);
    (void)rows.whole(rank.run);
    EXPECT_EQ(done, 1);
    wait();
    (void)rows.whole(rank.run);
    EXPECT_EQ(done, 1) << "the rows are there already";
  });
}

TEST(SharedRows, SumsGiveEveryRankItsRows) {
  ThreadWorld(2).run([](Communicator& comm) {
    GroupRank rank(comm, true, 1, 4);
    const float own = comm.rank() == 0 ? 1 : 100;
    const Tensor part = rank.tensor({1, 4, 1}, {own, 2 * own, 3 * own, 4 * own});
    const Tensor sum = sum_rows(part, rank.run);
    EXPECT_EQ(sum.shape(), (Shape{1, 2, 1}));
    EXPECT_EQ(values_in(sum), comm.rank() == 0 ? (Floats{101, 202}) : (Floats{303, 404}));
  });
}

TEST(SharedRows, SumsOfAWholeStreamAreTheSameOnAllRanks) {
  ThreadWorld(3).run([](Communicator& comm) {
    GroupRank rank(comm, false, 1, 2);
    const Tensor part = rank.tensor({1, 2, 1}, {static_cast<float>(comm.rank()), 5});
    const Tensor sum = sum_rows(part, rank.run);
    EXPECT_EQ(sum.view().data, part.view().data);
    EXPECT_EQ(values_in(sum), (Floats{3, 15}));
    // If rows are not shared, every rank has them all.
    const Tensor all = gather_rows(part, rank.run);
    EXPECT_EQ(all.view().data, part.view().data);
  });
}

TEST(SharedRows, ASumLeavesOneWeightGradientForTheNextExchange) {
  ThreadWorld(2).run([](Communicator& comm) {
    GroupRank rank(comm, true, 1, 2);
    WeightGradients waiting;
    rank.run.waiting = &waiting;
    for (int i = 0; i < 3; ++i) {
      waiting.emplace_back([](trireme::Run&) {});
    }
    (void)sum_rows(rank.tensor({1, 2, 1}, {1, 2}), rank.run);
    EXPECT_EQ(waiting.size(), 1U);
  });
}

TEST(SharedRows, OfOneRankNeedNoExchange) {
  ThreadWorld(1).run([](Communicator& comm) {
    GroupRank rank(comm, true, 1, 2);
    EXPECT_FALSE(rank.run.shares_rows());
    const Tensor part = rank.tensor({1, 2, 1}, {1, 2});
    EXPECT_EQ(start_row_sum(part, rank.run), 0);
    EXPECT_EQ(finish_row_sum(part, 0, rank.run).view().data, part.view().data);
    EXPECT_EQ(gather_rows(part, rank.run).view().data, part.view().data);
  });
}

// Whether dropout drops an element of the stream does not depend on the rank that holds it.
TEST(SharedRows, DropoutOfAShareIsThatOfTheWhole) {
  ThreadWorld(3).run([](Communicator& comm) {
    GroupRank rank(comm, true, 2, 3);  // two rows each: the middle rank has some of both samples
    rank.run.training = true;
    rank.run.dropout = {11, 4};
    rank.run.first_sample = 8;
    const ResidualDropout dropout{0.5F, 7};
    const Tensor own = rank.tensor({1, 2, 8}, Floats(16, 1));
    apply_dropout(dropout, own, own, rank.run);
    trireme::Run alone = rank.run;
    alone.group = nullptr;
    const Tensor all = rank.tensor({2, 3, 8}, Floats(48, 1));
    apply_dropout(dropout, all, all, alone);
    const Floats mask = values_in(all);
    EXPECT_THAT(mask, testing::Contains(0.0F));
    EXPECT_THAT(mask, testing::Contains(2.0F));
    EXPECT_EQ(values_in(own),
              Floats(mask.begin() + 16 * comm.rank(), mask.begin() + 16 * (comm.rank() + 1)));
  });
}

TEST(ResidualDropout, IsOfTrainingWithAProbability) {
  DeviceContext context(kernels_named("reference"), 1);
  ParameterStore store(context, DType::f32);
  trireme::Run run{context, store};
  EXPECT_FALSE(drops({0.5F, 0}, run));
  run.training = true;
  EXPECT_TRUE(drops({0.5F, 0}, run));
  EXPECT_FALSE(drops({0, 0}, run));
}

}  // namespace
}  // namespace trireme
