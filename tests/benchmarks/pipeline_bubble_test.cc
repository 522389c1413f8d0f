#include "benchmarks/step/pipeline_bubble.h"

#include <cmath>

#include <gtest/gtest.h>

#include "mpi/thread/thread_world.h"

namespace trireme {
namespace {

// Returns the timings that a rank would have measured in the simulated run.
PipelineRunner::Timings timings_of(const PipelineSimulation& ran, int stage, double slower = 1) {
  const auto at = static_cast<std::size_t>(stage);
  PipelineRunner::Timings timings;
  timings.timeline = ran.stages[at];
  timings.seconds = slower * ran.stages[at].back().end;
  timings.compute_seconds = ran.busy[at];
  return timings;
}

TEST(PipelineBubble, IsThatOfTheSimulationWhereItCameTrue) {
  for (const auto schedule :
       {PipelineSchedule::one_f_one_b, PipelineSchedule::zero_bubble, PipelineSchedule::gpipe}) {
    const PipelineShape shape{3, 1, 5, true};
    const PipelineCosts costs{{{1, 2, 0}, {1.5, 3, 0}, {2, 4, 0}}, 0.25, 0.5, {}};
    const PipelineSimulation ran = simulate(make_schedules(schedule, shape), shape, costs);
    ThreadWorld world(shape.stages);
    world.run([&](Communicator& pp) {
      PipelineBubble bubble(schedule, shape);
      bubble.add(timings_of(ran, pp.rank()));
      const auto fractions = bubble.fractions(pp, 0.25);
      EXPECT_NEAR(fractions.measured, ran.bubble_fraction(), 1e-12);
      EXPECT_NEAR(fractions.predicted, ran.bubble_fraction(), 1e-12);
      EXPECT_NEAR(fractions.replayed, ran.bubble_fraction(), 1e-12);
      EXPECT_LT(bubble.fractions(pp, 0).predicted, ran.bubble_fraction());
    });
  }
}

// Steps of one kind take different times, which only the replay takes into account.
TEST(PipelineBubble, ReplaysEveryStep) {
  const PipelineShape shape{2, 1, 4};
  const auto schedule = PipelineSchedule::one_f_one_b;
  PipelineCosts costs = equal_costs(shape, {1, 2, 0});
  costs.steps = {{1, 4, 2, 1, 2, 1, 2, 2}, {1, 2, 1, 2, 1, 2, 1, 2}};
  const PipelineSimulation ran = simulate(make_schedules(schedule, shape), shape, costs);
  ThreadWorld world(shape.stages);
  world.run([&](Communicator& pp) {
    PipelineBubble bubble(schedule, shape);
    bubble.add(timings_of(ran, pp.rank()));
    const auto fractions = bubble.fractions(pp, 0);
    EXPECT_NEAR(fractions.measured, ran.bubble_fraction(), 1e-12);
    EXPECT_NEAR(fractions.replayed, ran.bubble_fraction(), 1e-12);
    EXPECT_GT(std::abs(fractions.predicted - ran.bubble_fraction()), 0.01);
  });
}

// One disturbed step of three does not affect the medians. A step that takes longer has a longer
// bubble.
TEST(PipelineBubble, TakesMediansOfSteps) {
  const PipelineShape shape{2, 2, 4};
  const auto schedule = PipelineSchedule::interleaved;
  const PipelineSimulation ran =
      simulate(make_schedules(schedule, shape), shape, equal_costs(shape, {1, 1, 1}));
  ThreadWorld world(shape.stages);
  world.run([&](Communicator& pp) {
    PipelineBubble bubble(schedule, shape);
    for (const double slower : {1.0, 7.0, 1.25}) {
      bubble.add(timings_of(ran, pp.rank(), slower));
    }
    const auto fractions = bubble.fractions(pp, 0);
    EXPECT_NEAR(1 - fractions.measured, (1 - ran.bubble_fraction()) / 1.25, 1e-12);
    EXPECT_NEAR(fractions.predicted, ran.bubble_fraction(), 1e-12);
  });
}

TEST(PipelineBubble, TransfersTakeTimeWhereThereIsAPeer) {
  ThreadWorld world(3);
  world.run([](Communicator& pp) {
    Pool pool{Device::cpu()};
    EXPECT_GT(measure_transfer(pp, pool, 1 << 16), 0) << "the last rank has no pair of its own";
  });
}

}  // namespace
}  // namespace trireme
