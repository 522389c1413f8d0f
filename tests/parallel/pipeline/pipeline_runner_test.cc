#include "src/parallel/pipeline/pipeline_runner.h"

#include <chrono>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpi/self_communicator.h"
#include "mpi/thread/thread_world.h"
#include "src/base/stopwatch.h"
#include "tests/parallel/pipeline/schedule_grid.h"
#include "tests/parallel/pipeline/toy_stage.h"

namespace trireme {
namespace {

using testing::HasSubstr;

const Shape kSmall{2, 3, 5};
// 768 KiB are more than any transport buffers.
const Shape kLarge{4, 192, 256};

void run_on_threads(const GridPoint& point, const Shape& activation) {
  ThreadWorld world(point.shape.stages);
  world.run([&](Communicator& pp) {
    pp.set_deadline(std::chrono::seconds(60));
    run_toy(pp, point.schedule, point.shape, activation);
  });
}

TEST(PipelineRunner, RunsEverySchedule) {
  for (const GridPoint& point : schedule_grid(4, 6)) {
    run_on_threads(point, kSmall);
  }
}

TEST(PipelineRunner, LargeMessagesHoldUpNobody) {
  for (const PipelineSchedule schedule :
       {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b, PipelineSchedule::zero_bubble}) {
    run_on_threads({schedule, {3, 1, 6, true}}, kLarge);
    run_on_threads({schedule, {2, 1, 4, true}}, kLarge);
  }
  run_on_threads({PipelineSchedule::interleaved, {2, 2, 4, true}}, kLarge);
  run_on_threads({PipelineSchedule::interleaved, {3, 2, 6, true}}, kLarge);
}

TEST(PipelineRunner, OneRankNeedsNoWorld) {
  SelfCommunicator self;
  run_toy(self, PipelineSchedule::one_f_one_b, {1, 1, 3, true}, kSmall);
  run_toy(self, PipelineSchedule::interleaved, {1, 3, 3, true}, kSmall);
}

TEST(PipelineRunner, ForwardsAlone) {
  const PipelineShape shape{3, 2, 4, true};
  ThreadWorld world(shape.stages);
  world.run([&](Communicator& pp) {
    DeviceContext context(Device::cpu(), 1);
    PipelineRunner runner({pp, context}, shape, kSmall, DType::f32);
    ToyStage toy(context.exchange(), shape, pp.rank(), kSmall);
    runner.run(make_forward_schedule(shape), toy);
    EXPECT_EQ(toy.steps(), make_forward_schedule(shape));
    EXPECT_EQ(toy.wrong(), 0);
  });
}

// One stage fails in the middle of a step, with transfers under way. The others get the error at
// once.
TEST(PipelineRunner, ErrorsEndTheRunOnAllRanks) {
  for (const std::string& name : pipeline_schedule_names()) {
    const PipelineSchedule schedule = parse_pipeline_schedule(name);
    const PipelineShape shape{3, schedule == PipelineSchedule::interleaved ? 2 : 1, 6, true};
    for (int guilty = 0; guilty < shape.stages; ++guilty) {
      ThreadWorld world(shape.stages);
      std::vector<std::string> heard(3);
      const auto life = [&](Communicator& pp) {
        DeviceContext context(Device::cpu(), 1);
        PipelineRunner runner({pp, context}, shape, kLarge, DType::f32);
        ToyStage toy(context.exchange(), shape, pp.rank(), kLarge, [&](const PipelineStep& step) {
          if (pp.rank() == guilty && step.micro_batch == 3) {
            throw DataError("a flipped byte");
          }
        });
        try {
          runner.run(make_schedule(schedule, shape, pp.rank()), toy);
        } catch (const CommError& error) {
          heard[static_cast<std::size_t>(pp.rank())] = error.what();
          throw;
        }
      };
      EXPECT_THROW(world.run(life), DataError) << name;
      for (int rank = 0; rank < shape.stages; ++rank) {
        if (rank != guilty) {
          EXPECT_THAT(heard[static_cast<std::size_t>(rank)], HasSubstr("ended early")) << name;
        }
      }
    }
  }
}

// The first stage is slow, so the second waits for it.
TEST(PipelineRunner, CountsTimeThatItWaitsAndComputes) {
  const PipelineShape shape{2, 1, 4};
  ThreadWorld world(2);
  world.run([&](Communicator& pp) {
    DeviceContext context(Device::cpu(), 1);
    PipelineRunner runner({pp, context}, shape, kSmall, DType::f32);
    double slept = 0;  // seconds in a run
    ToyStage toy(context.exchange(), shape, pp.rank(), kSmall, [&](const PipelineStep& step) {
      if (pp.rank() == 0 && step.kind == PipelineStep::Kind::forward) {
        const Stopwatch watch;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        slept += watch.seconds();
      }
    });
    for (int run = 0; run < 2; ++run) {  // the timings are those of the last run alone
      slept = 0;
      runner.run(make_schedule(PipelineSchedule::one_f_one_b, shape, pp.rank()), toy);
    }
    const PipelineRunner::Timings& t = runner.timings();
    if (pp.rank() == 0) {
      EXPECT_GE(t.compute_seconds, slept);
    } else {
      EXPECT_GT(t.wait.seconds(), 0);
    }
    // No part of the time is counted twice. This does not limit the speed.
    EXPECT_LE(t.compute_seconds + t.wait.seconds(), t.seconds);
    ASSERT_EQ(t.timeline.size(), 8U);
    double computed = 0;
    for (std::size_t i = 0; i < t.timeline.size(); ++i) {
      EXPECT_GE(t.timeline[i].start, i == 0 ? 0 : t.timeline[i - 1].end);
      computed += t.timeline[i].end - t.timeline[i].start;
    }
    EXPECT_DOUBLE_EQ(computed, t.compute_seconds);
  });
}

// WrongStage returns a tensor that the next stage cannot take.
class WrongStage : public ToyStage {
 public:
  WrongStage(Pool& pool, const PipelineShape& shape, Tensor gives)
      : ToyStage(pool, shape, 0, kSmall), gives_(std::move(gives)) {}
  Tensor forward(int, std::int64_t, Tensor) override { return gives_; }

 private:
  Tensor gives_;
};

TEST(PipelineRunner, NoticesTensorsThatDoNotFit) {
  const PipelineShape shape{1, 2, 1};
  SelfCommunicator self;
  DeviceContext context(Device::cpu(), 1);
  PipelineRunner runner({self, context}, shape, kSmall, DType::f32);
  const auto steps = make_schedule(PipelineSchedule::interleaved, shape, 0);
  for (const Tensor& wrong : {Tensor(), Tensor(context.exchange(), Shape{2, 3, 4}, DType::f32),
                              Tensor(context.exchange(), kSmall, DType::bf16)}) {
    WrongStage stage(context.exchange(), shape, wrong);
    EXPECT_THROW(runner.run(steps, stage), InternalError);
  }
  EXPECT_THROW(PipelineRunner({self, context}, {2, 1, 1}, kSmall, DType::f32), InternalError);
}

}  // namespace
}  // namespace trireme
