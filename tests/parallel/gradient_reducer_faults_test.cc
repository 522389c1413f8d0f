// Tests when reductions start, what they wait for, and how errors end a step.
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpi/self_communicator.h"
#include "mpi/thread/thread_world.h"
#include "src/base/stopwatch.h"
#include "tests/parallel/reducing_rank.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Recorder is a communicator that records which reductions start.
class Recorder : public SelfCommunicator {
 public:
  std::vector<std::int64_t> counts;

 private:
  Pending start(const OperationRequest& request) override {
    counts.push_back(request.into.count);
    return {};
  }
};

TEST(GradientReducerOverlap, ReducesWhileBackwardRuns) {
  Recorder comm;
  const Plan plan{2, Reproducibility::elastic, Order::backward, kSumBlock * 4};
  Rank rank(comm, {kSumBlock, kSumBlock, kSumBlock}, plan);
  rank.reducer.begin_step(2);
  GradientSink& first = rank.reducer.open(0);
  GradientSink& second = rank.reducer.open(1);
  rank.give(second, 0, 1, 2);
  EXPECT_TRUE(comm.counts.empty()) << "the micro-batch before is not there";
  rank.give(first, 0, 0, 1);
  EXPECT_TRUE(comm.counts.empty()) << "only the whole step's sum goes out";
  rank.give(first, 0, 0, 2);
  EXPECT_EQ(comm.counts.size(), 1U) << "at once";
  rank.give(second, 0, 1, 1);
  EXPECT_EQ(comm.counts.size(), 2U);
  rank.give(first, 0, 0, 0);
  rank.give(second, 0, 1, 0);
  EXPECT_EQ(comm.counts.size(), 3U);
  rank.reducer.finish_step();
}

TEST(GradientReducerFaults, NoticesWhatBackwardForgot) {
  SelfCommunicator comm;
  Rank rank(comm, {kSumBlock, kSumBlock},
            {2, Reproducibility::elastic, Order::backward, kSumBlock * 4});
  GradientReducer& reducer = rank.reducer;
  EXPECT_THROW(reducer.open(0), InternalError) << "before begin_step";
  EXPECT_THROW(reducer.finish_step(), InternalError) << "before begin_step";
  reducer.begin_step(2);
  EXPECT_THROW((void)reducer.sum(0), InternalError) << "before finish_step";
  EXPECT_THROW(reducer.open(1), InternalError) << "out of order";
  GradientSink& sink = reducer.open(0);
  EXPECT_THROW(reducer.open(0), InternalError) << "again";
  EXPECT_THROW(sink.ready(1), InternalError) << "without a gradient";
  rank.give(sink, 0, 0, 1);
  EXPECT_THROW(sink.ready(1), InternalError) << "twice";
  EXPECT_THROW((void)sink.gradient(1), InternalError) << "when it was ready";
  EXPECT_THROW((void)sink.gradient(2), InternalError) << "no such parameter";
  EXPECT_THROW(sink.ready(-1), InternalError) << "no such parameter";
  EXPECT_THROW(reducer.finish_step(), InternalError) << "a micro-batch is missing";
  GradientSink& other = reducer.open(1);
  rank.give(other, 0, 1, 1);
  rank.give(other, 0, 1, 0);
  EXPECT_THROW(reducer.open(2), InternalError) << "one too many";
  try {
    reducer.finish_step();
    FAIL() << "a gradient is missing";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no gradient for p0"));
  }
  rank.give(sink, 0, 0, 0);
  reducer.finish_step();
  EXPECT_EQ(as<float>(reducer.sum(1))[0], gradient(0, 0, 0, 0) + gradient(0, 1, 0, 0));
}

// Rank 1 fails in the middle of a step. Rank 0 gets the error before its deadline.
TEST(GradientReducerFaults, ErrorsEndTheStepOnAllRanks) {
  for (const int level : {0, 2}) {
    ThreadWorld world(2, {"alpha", "beta"});
    std::string heard;
    const auto life = [&](Communicator& comm) {
      Rank rank(comm, kSizes, {2, Reproducibility::elastic, Order::backward, kSmallBucket, level});
      rank.reducer.begin_step(2);
      GradientSink& sink = rank.reducer.open(comm.rank());
      try {
        for (ParameterId id = rank.store->count() - 1; id >= 0; --id) {
          if (comm.rank() == 1 && id == 2) {
            throw DataError("a flipped byte");
          }
          rank.give(sink, 0, comm.rank(), id);
        }
        rank.reducer.finish_step();
      } catch (const CommError& error) {
        heard = error.what();
        throw;
      }
    };
    EXPECT_THROW(world.run(life), DataError);
    EXPECT_THAT(heard, AllOf(HasSubstr("rank 1 (host beta) ended early: a flipped byte"),
                             HasSubstr("rank 0 (host alpha): ")));
  }
}

// SlowReduction is a reduction that takes a while once it is waited for, which it measures.
class SlowReduction : public Pending::Operation {
 public:
  explicit SlowReduction(double& waited) : waited_(waited) {}
  void wait() override {
    const Stopwatch watch;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    waited_ += watch.seconds();
  }
  bool reached() override { return false; }
  void abandon() noexcept override {}

 private:
  double& waited_;
};
class SlowCommunicator : public SelfCommunicator {
 public:
  double waited = 0;  // seconds

 private:
  Pending start(const OperationRequest&) override {
    return Pending(std::make_shared<SlowReduction>(waited));
  }
};

TEST(GradientReducerOverlap, CountsTheTimeItWaits) {
  SlowCommunicator comm;
  Rank rank(comm, {kSumBlock, kSumBlock},
            {1, Reproducibility::elastic, Order::backward, kSumBlock * 4});
  rank.reducer.begin_step(1);
  GradientSink& sink = rank.reducer.open(0);
  rank.give(sink, 0, 0, 1);
  rank.give(sink, 0, 0, 0);
  EXPECT_EQ(rank.reducer.timings().exposed.seconds(), 0);
  rank.reducer.finish_step();
  EXPECT_GT(comm.waited, 0);
  EXPECT_GE(rank.reducer.timings().exposed.seconds(), comm.waited);
}

}  // namespace
}  // namespace trireme
