#include "src/parallel/pipeline/simulation.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/parallel/pipeline/schedule_grid.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Kind = PipelineStep::Kind;

// These seconds are exact in binary. A backward takes twice as long as a forward.
constexpr StageCosts kCosts{0.25, 0.25, 0.25};

PipelineSimulation simulate_point(const GridPoint& point, const PipelineCosts& costs) {
  return simulate(make_schedules(point.schedule, point.shape), point.shape, costs);
}
PipelineSimulation simulate_point(const GridPoint& point) {
  return simulate_point(point, equal_costs(point.shape, kCosts));
}

// Returns the seconds that a rank waits in a pipeline of equal stages. A bubble is filled with as
// many weight gradients as may be postponed.
double bubble_formula(const GridPoint& point, const StageCosts& costs) {
  const auto others = static_cast<double>(point.shape.stages - 1);
  if (point.schedule != PipelineSchedule::zero_bubble) {
    return others * (costs.forward + costs.backward_input + costs.backward_weight);
  }
  const auto put_off = static_cast<double>(
      std::min<std::int64_t>(point.shape.stages, point.shape.micro_batches) - 1);
  return others * (costs.forward + costs.backward_input) - put_off * costs.backward_weight;
}

TEST(PipelineSimulation, BubblesAreThoseOfTheFormulas) {
  for (const GridPoint& point : schedule_grid()) {
    const PipelineSimulation got = simulate_point(point);
    const double ideal = static_cast<double>(point.shape.micro_batches * point.shape.chunks) *
                         (kCosts.forward + kCosts.backward_input + kCosts.backward_weight);
    for (int stage = 0; stage < point.shape.stages; ++stage) {
      EXPECT_EQ(got.busy[static_cast<std::size_t>(stage)], ideal) << point.text();
      EXPECT_EQ(got.bubble(stage), bubble_formula(point, kCosts))
          << point.text() << " stage " << stage;
    }
    const double ratio = bubble_formula(point, kCosts) / ideal;
    EXPECT_NEAR(got.bubble_of_ideal(), ratio, 1e-12) << point.text();
    EXPECT_NEAR(got.bubble_fraction(), ratio / (1 + ratio), 1e-12) << point.text();
    if (point.schedule != PipelineSchedule::zero_bubble) {
      const auto waits = static_cast<double>(point.shape.stages - 1);
      const auto work = static_cast<double>(point.shape.micro_batches * point.shape.chunks);
      EXPECT_NEAR(got.bubble_of_ideal(), waits / work, 1e-12) << point.text();
    }
  }
}

// For m >= p, the bubble is (p-1) (f+b-w), as in the paper, if a weight gradient fits into the gap
// that a forward leaves. In any case it is above 0 and below that of 1f1b.
TEST(PipelineSimulation, ZeroBubbleIsBelowOneFOneB) {
  for (const StageCosts& costs : {StageCosts{1, 1, 1},
                                  StageCosts{1, 1.25, 0.75},
                                  StageCosts{1, 2, 1},
                                  StageCosts{1, 0.5, 1.5},
                                  {2, 1, 3}}) {
    for (int p = 2; p <= 8; ++p) {
      for (std::int64_t m = 1; m <= 16; ++m) {
        const PipelineShape shape{p, 1, m};
        const GridPoint point{PipelineSchedule::zero_bubble, shape};
        const PipelineCosts all = equal_costs(shape, costs);
        const double zero = simulate_point(point, all).bubble(0);
        const double one = simulate_point({PipelineSchedule::one_f_one_b, shape}, all).bubble(0);
        SCOPED_TRACE(point.text());
        if (costs.backward_weight <= costs.forward) {
          EXPECT_NEAR(zero, bubble_formula(point, costs), 1e-9);
        }
        EXPECT_LE(zero, one - (p - 1) * std::min(costs.backward_weight, costs.backward_input));
      }
    }
  }
}

TEST(PipelineSimulation, PeaksOfLiveMicroBatches) {
  for (const GridPoint& point : schedule_grid()) {
    const PipelineSimulation got = simulate_point(point);
    const PipelineShape& shape = point.shape;
    for (int stage = 0; stage < shape.stages; ++stage) {
      const std::int64_t behind = shape.stages - stage - 1;
      std::int64_t expected = behind + 1;
      if (point.schedule == PipelineSchedule::gpipe) {
        expected = shape.micro_batches;
      } else if (point.schedule == PipelineSchedule::zero_bubble) {
        expected = shape.stages;  // as on the first stage of 1f1b
      } else if (point.schedule == PipelineSchedule::interleaved) {
        expected = 2 * behind + std::int64_t{shape.chunks - 1} * shape.stages + 1;
      }
      EXPECT_EQ(got.peak_live[static_cast<std::size_t>(stage)],
                std::min(expected, shape.micro_batches * shape.chunks))
          << point.text() << " stage " << stage;
    }
  }
}

// No step starts before the steps whose results it needs, for any costs.
TEST(PipelineSimulation, NothingStartsBeforeItsInput) {
  for (const GridPoint& point : schedule_grid(4, 8)) {
    SCOPED_TRACE(point.text());
    const PipelineShape& shape = point.shape;
    PipelineCosts costs = equal_costs(shape, {1, 2, 1}, 0.375);
    costs.tie = 0.125;
    for (std::size_t at = 0; at < costs.stages.size(); ++at) {
      costs.stages[at].forward += static_cast<double>(at * 7 % 5) / 4;
    }
    const PipelineSimulation got = simulate_point(point, costs);
    const auto when = [&](int virtual_stage, std::int64_t m, bool gradient) {
      for (const TimedStep& t :
           got.stages[static_cast<std::size_t>(virtual_stage % shape.stages)]) {
        if (shape.virtual_stage(virtual_stage % shape.stages, t.step.chunk) == virtual_stage &&
            t.step.micro_batch == m &&
            (gradient ? sends_gradient(t.step.kind) : t.step.kind == Kind::forward)) {
          return t;
        }
      }
      ADD_FAILURE() << "no such step";
      return TimedStep{};
    };
    const double transfer = shape.stages > 1 ? costs.transfer : 0;
    for (int at = 0; at + 1 < shape.virtual_stages(); ++at) {
      for (std::int64_t m = 0; m < shape.micro_batches; ++m) {
        ASSERT_GE(when(at + 1, m, false).start, when(at, m, false).end + transfer);
        ASSERT_GE(when(at, m, true).start, when(at + 1, m, true).end + transfer);
        ASSERT_GE(when(at, m, true).start, when(at, m, false).end);
      }
    }
    for (const auto& timeline : got.stages) {
      for (std::size_t i = 0; i + 1 < timeline.size(); ++i) {
        ASSERT_GE(timeline[i + 1].start, timeline[i].end) << "one step at a time";
      }
    }
  }
}

// A tie never makes the last stage wait, and only the last few ties come after the last backward.
TEST(PipelineSimulation, TiesCostNothing) {
  for (GridPoint point : schedule_grid()) {
    if (!point.shape.tied) {
      continue;
    }
    const PipelineSimulation tied = simulate_point(point);
    point.shape.tied = false;
    const PipelineSimulation plain = simulate_point(point);
    const auto end_of_work = [](const PipelineSimulation& simulation) {
      double end = 0;
      for (const TimedStep& timed : simulation.stages.back()) {
        end = timed.step.kind == Kind::tie ? end : timed.end;
      }
      return end;
    };
    EXPECT_EQ(end_of_work(tied), end_of_work(plain)) << point.text();
    EXPECT_EQ(tied.seconds, plain.seconds) << point.text();
  }
  // Of 16 micro-batches, at most p - 1 gradients of the first stage come after the last backward.
  // One more is allowed for safety.
  const PipelineShape shape{4, 1, 16, true};
  const auto steps = make_schedule(PipelineSchedule::one_f_one_b, shape, 3);
  const auto last_backward =
      std::find(steps.begin(), steps.end(), PipelineStep{Kind::backward, 0, 15});
  EXPECT_LE(steps.end() - last_backward - 1, 4);
}

TEST(PipelineSimulation, ForwardsAlone) {
  for (const int chunks : {1, 3}) {
    for (std::int64_t m = 1; m <= 9; ++m) {
      const PipelineShape shape{4, chunks, m};
      const PipelineSteps all(4, make_forward_schedule(shape));
      EXPECT_GT(simulate(all, shape, equal_costs(shape, kCosts)).seconds, 0);
    }
  }
}

TEST(PipelineSimulation, MeansOfATimelineAreItsCosts) {
  const PipelineShape shape{2, 2, 4, true};
  PipelineCosts costs = equal_costs(shape, {1, 3, 0}, 0.5);
  costs.stages[2].forward = 2;
  costs.tie = 5;
  const auto got = simulate(make_schedules(PipelineSchedule::interleaved, shape), shape, costs);
  const auto means = mean_costs(got.stages[0], 2);
  ASSERT_EQ(means.size(), 2U);
  EXPECT_EQ(means[0].forward, 1);
  EXPECT_EQ(means[1].forward, 2);
  EXPECT_EQ(means[0].backward_input, 3);
  EXPECT_EQ(mean_costs(got.stages[1], 2)[1].backward_input, 3) << "without its ties";
  const PipelineShape split{2, 1, 4};
  const auto zero = simulate(make_schedules(PipelineSchedule::zero_bubble, split), split,
                             equal_costs(split, {1, 2, 4}));
  EXPECT_EQ(mean_costs(zero.stages[1], 1)[0].backward_weight, 4);
  EXPECT_EQ(mean_costs({}, 1)[0].forward, 0);
}

TEST(PipelineSimulation, NoticesDeadlock) {
  const PipelineShape shape{2, 1, 1};
  const PipelineSteps wrong = {{{Kind::forward, 0, 0}, {Kind::backward, 0, 0}},
                               {{Kind::backward, 0, 0}, {Kind::forward, 0, 0}}};
  EXPECT_THAT(
      message_of<InternalError>([&] { (void)simulate(wrong, shape, equal_costs(shape, kCosts)); }),
      AllOf(HasSubstr("stage 0 before backward of micro-batch 0, chunk 0"),
            HasSubstr("stage 1 before backward of micro-batch 0, chunk 0")));
  const PipelineSteps early = {{{Kind::backward_weight, 0, 0}}, {}};
  EXPECT_THROW((void)simulate(early, shape, equal_costs(shape, kCosts)), InternalError);
}

// The times are computed by hand. The stages take 1 and 3 seconds for forward, and for each half of
// backward.
TEST(PipelineSimulation, UnevenStages) {
  const PipelineShape shape{2, 1, 2};
  const PipelineCosts costs{{{1, 1, 1}, {3, 3, 3}}, 0.5, 0, {}};
  const PipelineSimulation got =
      simulate(make_schedules(PipelineSchedule::one_f_one_b, shape), shape, costs);
  // From 1.5 s on, stage 1 takes 3 + 6 s per micro-batch; its second gradient reaches stage 0 at 20
  // s.
  EXPECT_EQ(got.stages[1].back().end, 19.5);
  EXPECT_EQ(got.seconds, 22);
  EXPECT_EQ(got.bubble(0), 16);
  EXPECT_EQ(got.bubble(1), 4);
  EXPECT_DOUBLE_EQ(got.bubble_fraction(), 20.0 / 44);
  EXPECT_DOUBLE_EQ(got.bubble_of_ideal(), 20.0 / 24);
}

}  // namespace
}  // namespace trireme
