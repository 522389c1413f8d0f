#include "src/plan/simulate/job_simulation.h"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

namespace trireme {
namespace {

using enum SimulatedCause;

constexpr double kDay = 86400;

// A small job with round times, and no faults but those that a test adds: steps of 10 s, a save in
// memory after 10 steps and on disk after 100, which take 0 s and stall for 1 s.
JobModel small_job() {
  JobModel model;
  model.nodes = 4;
  model.days = 0.1;  // 8640 s
  model.step_seconds = 10;
  model.rates.source = "none";
  model.times.start = 100;
  model.times.finish = 0;
  model.times.detect = {1, 65, 10, 20, 30, 0, 0};
  model.times.exclude = 4;
  model.times.relaunch = 50;
  model.times.load_memory = 5;
  model.times.load_disk = 45;
  model.times.site_hours = 0.5;
  model.times.spread = 0;
  model.checkpoint = {{100, ""}, {10, ""}, true, 1, 0, 0};
  return model;
}

SimulatedRun simulate_with(const JobModel& model, std::vector<JobFault> faults) {
  return simulate_job(model, {std::move(faults), false});
}

double sum(const SimulatedRun& run) {
  return std::accumulate(run.seconds.begin(), run.seconds.end(), 0.0);
}

TEST(JobSimulation, WithoutFaultsOnlySavesCost) {
  const SimulatedRun run = simulate_with(small_job(), {});
  EXPECT_DOUBLE_EQ(run.wall, 8640);
  EXPECT_DOUBLE_EQ(run.at(start), 100);
  // Ten steps and a save take 101 s: 84 times, and 56 s of the next ten.
  EXPECT_DOUBLE_EQ(run.at(checkpoint), 84);
  EXPECT_DOUBLE_EQ(run.at(train), 8640 - 100 - 84);
  EXPECT_DOUBLE_EQ(run.steps, run.at(train) / 10);
  EXPECT_EQ(run.launches, 1);
  EXPECT_EQ(run.from_nothing, 1);
}

TEST(JobSimulation, EndsAfterItsSteps) {
  JobModel model = small_job();
  model.steps = 25;
  model.times.finish = 7;
  const SimulatedRun run = simulate_with(model, {});
  EXPECT_TRUE(run.is_finished);
  EXPECT_DOUBLE_EQ(run.wall, 100 + 250 + 3 + 7);  // with a save at the end
  EXPECT_DOUBLE_EQ(run.at(finish), 7);
}

// After 100 s of start and 102 s of ten steps and a save, the fault hits 58 s later.
TEST(JobSimulation, ADeadRankCostsTheStepsSinceTheSave) {
  const SimulatedRun run =
      simulate_with(small_job(), {{100 + 101 + 58, JobFaultKind::process, 2, 0}});
  EXPECT_DOUBLE_EQ(run.at(detect), 1);
  EXPECT_DOUBLE_EQ(run.at(exclude), 4);
  EXPECT_DOUBLE_EQ(run.at(relaunch), 50);
  EXPECT_DOUBLE_EQ(run.at(load), 5);
  EXPECT_DOUBLE_EQ(run.at(redone), 58);
  EXPECT_EQ(run.from_memory, 1);
  EXPECT_EQ(run.faults[static_cast<std::size_t>(JobFaultKind::process)], 1);
  EXPECT_NEAR(sum(run), run.wall, 1e-6);
}

TEST(JobSimulation, AFaultDuringASaveLosesIt) {
  const SimulatedRun run = simulate_with(small_job(), {{100 + 100.5, JobFaultKind::process, 2, 0}});
  EXPECT_DOUBLE_EQ(run.at(redone), 100);
  EXPECT_EQ(run.from_nothing, 2);
}

TEST(JobSimulation, ANodeIsReplacedAndItsStateComesFromThePartner) {
  JobModel model = small_job();
  model.spares = 1;
  const std::vector<JobFault> lost = {{100 + 101 + 58, JobFaultKind::node, 2, 0}};
  const SimulatedRun with = simulate_with(model, lost);
  EXPECT_EQ(with.from_memory, 1);
  EXPECT_DOUBLE_EQ(with.at(redone), 58);
  EXPECT_DOUBLE_EQ(with.at(detect), 10);
  EXPECT_EQ(with.waits, 0);
  model.checkpoint.partner = false;
  const SimulatedRun without = simulate_with(model, lost);
  EXPECT_EQ(without.from_nothing, 2);  // nothing was on disk yet
  EXPECT_DOUBLE_EQ(without.at(redone), 158);
}

TEST(JobSimulation, ACopyThatIsNotCompleteDoesNotCount) {
  JobModel model = small_job();
  model.spares = 1;
  model.checkpoint.memory_seconds = 60;
  const SimulatedRun run = simulate_with(model, {{100 + 202 + 58, JobFaultKind::node, 2, 0}});
  EXPECT_DOUBLE_EQ(run.at(redone), 158);  // from the save before
}

// Node 2's copy is on node 3. Both are lost, one during the recovery from the other.
TEST(JobSimulation, WithBothNodesOfAPairTheStateComesFromDisk) {
  JobModel model = small_job();
  model.spares = 2;
  const double fault = 100 + 11 * 101 + 58;
  const auto lose = [&](std::int64_t second) {
    return simulate_with(
        model, {{fault, JobFaultKind::node, 2, 0}, {fault + 30, JobFaultKind::node, second, 0}});
  };
  const SimulatedRun pair = lose(3);
  EXPECT_EQ(pair.from_disk, 1);
  EXPECT_DOUBLE_EQ(pair.at(load), 45);
  EXPECT_DOUBLE_EQ(pair.at(redone), 158);
  EXPECT_EQ(pair.launches, 3);
  EXPECT_EQ(lose(0).from_memory, 1);
}

TEST(JobSimulation, AGroupFailsAtOnceAndItsPartnersSurvive) {
  JobModel model = small_job();
  model.spares = 2;
  model.group_nodes = 2;
  const SimulatedRun run = simulate_with(model, {{100 + 101 + 58, JobFaultKind::group, 1, 0}});
  EXPECT_EQ(run.from_memory, 1);
  EXPECT_DOUBLE_EQ(run.at(detect), 20);
  EXPECT_EQ(run.waits, 0);
}

TEST(JobSimulation, WithoutASpareItWaitsForTheRepairOrTheQueue) {
  JobModel model = small_job();
  model.times.repair_hours = 0.2;
  const std::vector<JobFault> lost = {{100 + 101 + 58, JobFaultKind::node, 2, 0}};
  const SimulatedRun repaired = simulate_with(model, lost);
  EXPECT_EQ(repaired.waits, 1);
  EXPECT_NEAR(repaired.at(wait), 720 - 14, 1e-9);
  EXPECT_EQ(repaired.from_memory, 1);
  model.queue.wait_hours = 0.1;
  const SimulatedRun requeued = simulate_with(model, lost);
  EXPECT_NEAR(requeued.at(wait), 360, 1e-9);
  EXPECT_DOUBLE_EQ(requeued.at(start), 200);
  EXPECT_EQ(requeued.from_memory, 0);  // a new job has other nodes
  model.min_nodes = 3;
  const SimulatedRun smaller = simulate_with(model, lost);
  EXPECT_DOUBLE_EQ(smaller.at(wait), 0);
  EXPECT_GT(smaller.at(slow), 0);
}

// The job that comes out of the queue gets healthy nodes, whatever failed in the meantime.
TEST(JobSimulation, WhatFailsWhileTheJobIsQueuedDoesNotMatter) {
  JobModel model = small_job();
  model.queue.wait_hours = 0.2;
  const double lost = 100 + 101 + 58;
  const SimulatedRun run = simulate_with(model, {{lost, JobFaultKind::node, 2, 0},
                                                 {lost + 300, JobFaultKind::node, 1, 0},
                                                 {lost + 500, JobFaultKind::process, 3, 0}});
  EXPECT_EQ(run.waits, 1);
  EXPECT_NEAR(run.at(wait), 720, 1e-9);
  EXPECT_EQ(run.launches, 2);
  model.queue = {1, 0.1};
  const SimulatedRun limited = simulate_with(
      model, {{3600 + 150, JobFaultKind::node, 1, 0}, {3600 + 200, JobFaultKind::group, 2, 0}});
  EXPECT_EQ(limited.waits, 0);
  EXPECT_DOUBLE_EQ(limited.at(wait), 2 * 360);
  // A loss of the site matters to all.
  const SimulatedRun site = simulate_with(model, {{3600 + 150, JobFaultKind::site, 0, 0}});
  EXPECT_GT(site.at(wait), 1800);
}

// The repair of a node that failed while the job was waiting begins when it fails.
TEST(JobSimulation, ARepairBeginsWhenTheNodeFails) {
  JobModel model = small_job();
  model.times.repair_hours = 0.2;
  model.queue.wait_hours = 10;
  const double lost = 100 + 101 + 58;
  const SimulatedRun run = simulate_with(
      model, {{lost, JobFaultKind::node, 2, 0}, {lost + 100, JobFaultKind::node, 1, 0}});
  EXPECT_NEAR(run.at(wait), 100 + 720 - 14, 1e-9);
}

TEST(JobSimulation, TheSiteTakesTheMemoryWithIt) {
  const SimulatedRun run =
      simulate_with(small_job(), {{100 + 11 * 101 + 58, JobFaultKind::site, 0, 0}});
  EXPECT_EQ(run.from_disk, 1);
  EXPECT_NEAR(run.at(wait), 1800 - 30, 1e-9);
  EXPECT_DOUBLE_EQ(run.at(start), 200);
  EXPECT_DOUBLE_EQ(run.at(redone), 158);
}

TEST(JobSimulation, AFaultOfANodeOutsideTheJobDoesNotMatter) {
  JobModel model = small_job();
  model.spares = 1;
  const SimulatedRun run = simulate_with(model, {{300, JobFaultKind::process, 4, 0}});
  EXPECT_EQ(run.launches, 1);
  // A lost spare is missing when it is needed.
  const SimulatedRun lost =
      simulate_with(model, {{300, JobFaultKind::node, 4, 0}, {500, JobFaultKind::node, 1, 0}});
  EXPECT_EQ(lost.waits, 1);
}

TEST(JobSimulation, StragglersSlowAllUntilTheyAreReplaced) {
  JobModel model = small_job();
  model.spares = 1;
  model.straggler = {2, 0.5, 10, false};
  const std::vector<JobFault> slows = {{1000, JobFaultKind::straggler, 1, 0}};
  const SimulatedRun kept = simulate_with(model, slows);
  EXPECT_NEAR(kept.at(slow), 895, 10);  // half of 1800 s, without the saves
  model.straggler.replace = true;
  const SimulatedRun replaced = simulate_with(model, slows);
  EXPECT_NEAR(replaced.at(slow), 298, 5);
  EXPECT_DOUBLE_EQ(replaced.at(redone), 0);
  EXPECT_EQ(replaced.launches, 2);
}

TEST(JobSimulation, MaintenanceAndTimeLimitsLoseNoStep) {
  JobModel model = small_job();
  model.maintenance = {0.04, 0.1};
  const SimulatedRun maintained = simulate_with(model, {});
  EXPECT_DOUBLE_EQ(maintained.at(maintenance), 2 * 360);
  EXPECT_DOUBLE_EQ(maintained.at(redone), 0);
  EXPECT_EQ(maintained.from_disk, 2);
  model.maintenance = {};
  model.queue = {1, 0.1};
  const SimulatedRun limited = simulate_with(model, {});
  EXPECT_DOUBLE_EQ(limited.at(wait), 2 * 360);
  EXPECT_DOUBLE_EQ(limited.at(redone), 0);
  EXPECT_NEAR(sum(limited), limited.wall, 1e-6);
}

// J. T. Daly (Future Generation Computer Systems 22(3), 2006), eq. 20: the expected time of a job
// with exponentially distributed failures, the time of a restart included.
TEST(JobSimulation, AgreesWithDalysModelOnAverage) {
  JobModel model = small_job();
  model.nodes = 100;
  model.days = 100;
  model.step_seconds = 1;
  model.steps = 2e6;
  model.rates.process = 1000 * 24 / 1.5 / 100;  // a fault every 1.5 hours
  model.times.start = 0;
  model.times.exclude = 0;
  model.times.detect = {};
  model.times.relaunch = 240;
  model.times.load_disk = 60;
  for (const std::int64_t interval : {300, 1000, 4000}) {
    model.checkpoint = {{interval, ""}, {0, ""}, false, 30, 0, 0};
    const double between = model.mean_seconds_between_stops();
    EXPECT_NEAR(between, 5400, 1e-6);
    double wall = 0;
    constexpr int kDraws = 40;
    for (std::uint32_t draw = 0; draw < kDraws; ++draw) {
      const SimulatedRun run = simulate_job(model, draw_faults(model, 7, draw));
      ASSERT_TRUE(run.is_finished);
      wall += run.wall / kDraws;
    }
    const auto t = static_cast<double>(interval);
    const double expected =
        between * std::exp(300 / between) * (std::exp((t + 30) / between) - 1) * model.steps / t;
    EXPECT_NEAR(wall / expected, 1, 0.01) << interval;
  }
}

TEST(JobSimulation, EverySecondHasACause) {
  JobModel model = small_job();
  model.nodes = 64;
  model.spares = 2;
  model.group_nodes = 8;
  model.days = 20;
  model.rates = {"none", 200, 50, 50, 20, 50, 60, 0.1, 10};
  model.times.spread = 1;
  model.straggler.replace = true;
  model.maintenance = {3, 5};
  model.queue = {48, 2};
  for (std::uint32_t draw = 0; draw < 20; ++draw) {
    const SimulatedRun run = simulate_job(model, draw_faults(model, 1, draw));
    EXPECT_DOUBLE_EQ(run.wall, 20 * kDay);
    EXPECT_NEAR(sum(run) / run.wall, 1, 1e-9) << draw;
    EXPECT_NEAR(run.at(train), run.steps * model.step_seconds, 1e-6 * run.wall) << draw;
    EXPECT_GT(run.launches, 50);
    for (const double seconds : run.seconds) {
      EXPECT_GE(seconds, 0);
    }
  }
}

}  // namespace
}  // namespace trireme
