// Properties that any planner must have, checked over a grid of models, clusters and layouts: no
// figure of them is fitted.
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/plan/search.h"

namespace trireme {
namespace {

constexpr double kClose = 1e-9;  // relative

Cluster round_cluster() { return load_cluster("test"); }

PlanModel small_model() {
  return {.layers = 16,
          .hidden = 2048,
          .heads = 16,
          .kv_heads = 16,
          .head_dim = 128,
          .ffn = 8192,
          .vocab = 51200,
          .sequence = 2048};
}

PlanTask small_task() {
  PlanTask task;
  task.model = small_model();
  task.global_batch = 64;
  task.steps = 1000;
  return task;
}

PlanLayout layout_of(std::int64_t dp, std::int64_t tp, std::int64_t pp, int zero = 0) {
  PlanLayout layout;
  layout.dp = dp;
  layout.tp = tp;
  layout.pp = pp;
  layout.zero = zero;
  layout.micro_batch = 1;
  layout.micro_batches = 64 / dp;
  return layout;
}

// Layouts of 1 to 16 ranks that use every axis, ZeRO level, recomputation and schedule.
std::vector<PlanLayout> grid() {
  std::vector<PlanLayout> layouts;
  for (const auto& [dp, tp, pp] :
       {std::array{1, 1, 1}, {4, 1, 1}, {1, 4, 1}, {1, 1, 4}, {2, 2, 4}, {4, 4, 1}, {8, 1, 2}}) {
    for (const int zero : {0, 1, 2, 3}) {
      for (const auto recompute :
           {PlanRecompute::none, PlanRecompute::selective, PlanRecompute::full}) {
        PlanLayout layout = layout_of(dp, tp, pp, zero);
        layout.recompute = recompute;
        layouts.push_back(layout);
        if (pp > 1) {
          layout.schedule = PipelineSchedule::zero_bubble;
          layouts.push_back(layout);
          layout.schedule = PipelineSchedule::interleaved;
          layout.virtual_stages = 2;
          layouts.push_back(layout);
        }
      }
    }
  }
  return layouts;
}

double seconds_of(const PlanTask& task, const Cluster& cluster, const PlanLayout& layout) {
  const PlanWork work{task.model, cluster, task.software, task.precision};
  return step_time(work, layout, BubbleMethod::simulated).total();
}

double bytes_of(const PlanTask& task, const Cluster& cluster, const PlanLayout& layout) {
  return rank_memory({task.model, cluster, task.software, task.precision}, layout).total();
}

// Expects that no layout's step is slower after the change.
void expect_never_slower(const std::function<void(Cluster&)>& change) {
  const PlanTask task = small_task();
  const Cluster before = round_cluster();
  Cluster after = before;
  change(after);
  bool faster = false;
  for (const PlanLayout& layout : grid()) {
    const double was = seconds_of(task, before, layout);
    const double is = seconds_of(task, after, layout);
    EXPECT_LE(is, was * (1 + kClose)) << layout_text(layout);
    faster = faster || is < was;
  }
  EXPECT_TRUE(faster) << "the change has no effect on any layout";
}

TEST(PlannerProperties, TheSumOfTheTermsIsTheStep) {
  const PlanTask task = small_task();
  const Cluster cluster = round_cluster();
  const PlanWork work{task.model, cluster, task.software, task.precision};
  for (const PlanLayout& layout : grid()) {
    const StepTime time = step_time(work, layout, BubbleMethod::simulated, {2.0, 100.0});
    double sum = 0;
    for (const double term : time.terms()) {
      EXPECT_GE(term, -1e-12) << layout_text(layout);
      sum += term;
    }
    EXPECT_NEAR(sum, time.total(), kClose * sum);
    EXPECT_EQ(time.checkpoint, 0.02);
  }
}

TEST(PlannerProperties, ABusyStageAndItsIdleTimeAreTheSchedule) {
  const PlanTask task = small_task();
  const Cluster cluster = round_cluster();
  const PlanWork work{task.model, cluster, task.software, task.precision};
  for (const PlanLayout& layout : grid()) {
    const StepTime t = step_time(work, layout, BubbleMethod::simulated);
    const double rest = t.accumulate + t.gradients + t.parameters + t.optimizer;
    EXPECT_GE(t.total() - rest, t.bubble);
    EXPECT_EQ(layout.pp == 1, t.bubble == 0 && t.transfer == 0) << layout_text(layout);
  }
}

TEST(PlannerProperties, AFasterDeviceIsNeverSlower) {
  expect_never_slower([](Cluster& c) { c.device.bf16_tflops *= 1.5; });
}
TEST(PlannerProperties, MoreEfficientProductsAreNeverSlower) {
  expect_never_slower([](Cluster& c) { c.efficiency.products = 0.95; });
}
TEST(PlannerProperties, MoreEfficientAttentionIsNeverSlower) {
  expect_never_slower([](Cluster& c) { c.efficiency.attention = 0.9; });
}
TEST(PlannerProperties, FasterMemoryIsNeverSlower) {
  expect_never_slower([](Cluster& c) { c.device.memory_gb_per_s *= 2; });
}
TEST(PlannerProperties, FasterLinksAreNeverSlower) {
  expect_never_slower([](Cluster& c) { c.links.gb_per_s *= 2; });
}
TEST(PlannerProperties, ShorterLatencyOfLinksIsNeverSlower) {
  expect_never_slower([](Cluster& c) { c.links.latency_us = 1; });
}
TEST(PlannerProperties, AFasterNetworkIsNeverSlower) {
  expect_never_slower([](Cluster& c) { c.network.gb_per_s *= 4; });
}
TEST(PlannerProperties, ShorterLatencyOfTheNetworkIsNeverSlower) {
  expect_never_slower([](Cluster& c) { c.network.latency_us = 1; });
}
TEST(PlannerProperties, ANetworkWithoutTaperIsNeverSlower) {
  const PlanTask task = small_task();
  Cluster tapered = round_cluster();
  tapered.network.taper = 0.25;
  for (const PlanLayout& layout : grid()) {
    EXPECT_LE(seconds_of(task, round_cluster(), layout),
              seconds_of(task, tapered, layout) * (1 + kClose));
  }
}
TEST(PlannerProperties, MoreOverlapIsNeverSlower) {
  expect_never_slower([](Cluster& c) { c.efficiency.overlap = 0.9; });
}

TEST(PlannerProperties, MoreMemoryNeverMakesALayoutInfeasible) {
  const PlanTask task = small_task();
  Cluster cluster = round_cluster();
  std::size_t before = 0;
  for (const std::int64_t gib : {4, 8, 16, 32, 64, 128}) {
    cluster.device.memory = gib << 30;
    const PlanResult result = plan_layouts(task, cluster, {4});
    EXPECT_GE(result.candidates.size(), before) << gib;
    before = result.candidates.size();
  }
  EXPECT_GT(before, 0U);
}

TEST(PlannerProperties, MoreMemoryNeverMakesTheBestLayoutSlower) {
  const PlanTask task = small_task();
  Cluster cluster = round_cluster();
  double before = std::numeric_limits<double>::infinity();
  for (const std::int64_t gib : {8, 16, 32, 64, 128}) {
    cluster.device.memory = gib << 30;
    const PlanResult result = plan_layouts(task, cluster, {4});
    if (!result.candidates.empty()) {
      const double days = result.candidates.front().outlook.days;
      EXPECT_LE(days, before * 1.02) << gib;  // ranks beyond the first dozen are not simulated
      before = days;
    }
  }
}

TEST(PlannerProperties, EachZeroLevelNeedsNoMoreMemory) {
  const PlanTask task = small_task();
  const Cluster cluster = round_cluster();
  for (const std::int64_t dp : {2, 4, 8, 16}) {
    for (int zero = 1; zero <= 3; ++zero) {
      const double gathered = rank_memory({task.model, cluster, task.software, task.precision},
                                          layout_of(dp, 1, 1, zero))
                                  .communication;
      EXPECT_LE(bytes_of(task, cluster, layout_of(dp, 1, 1, zero)) - gathered,
                bytes_of(task, cluster, layout_of(dp, 1, 1, zero - 1)));
    }
  }
}

TEST(PlannerProperties, RecomputationTakesTimeAndSavesMemory) {
  const PlanTask task = small_task();
  const Cluster cluster = round_cluster();
  for (PlanLayout layout : grid()) {
    if (layout.recompute != PlanRecompute::none) {
      continue;
    }
    double seconds = seconds_of(task, cluster, layout);
    double bytes = bytes_of(task, cluster, layout);
    for (const auto recompute : {PlanRecompute::selective, PlanRecompute::full}) {
      layout.recompute = recompute;
      EXPECT_GT(seconds_of(task, cluster, layout), seconds) << layout_text(layout);
      EXPECT_LT(bytes_of(task, cluster, layout), bytes) << layout_text(layout);
      seconds = seconds_of(task, cluster, layout);
      bytes = bytes_of(task, cluster, layout);
    }
  }
}

TEST(PlannerProperties, MoreTensorRanksNeedNoMoreMemory) {
  const PlanTask task = small_task();
  const Cluster cluster = round_cluster();
  for (const std::int64_t tp : {2, 4, 8, 16}) {
    EXPECT_LT(bytes_of(task, cluster, layout_of(1, tp, 1)),
              bytes_of(task, cluster, layout_of(1, tp / 2, 1)));
  }
}

TEST(PlannerProperties, SequenceParallelismNeedsNoMoreMemory) {
  const PlanTask task = small_task();
  const Cluster cluster = round_cluster();
  for (PlanLayout layout : grid()) {
    const double bytes = bytes_of(task, cluster, layout);
    layout.sequence_parallel = layout.tp > 1;
    EXPECT_LE(bytes_of(task, cluster, layout), bytes);
  }
}

TEST(PlannerProperties, MoreMicroBatchesHaveASmallerShareOfIdleTime) {
  PlanTask task = small_task();
  const Cluster cluster = round_cluster();
  const PlanWork work{task.model, cluster, task.software, task.precision};
  for (const auto schedule : {PipelineSchedule::one_f_one_b, PipelineSchedule::zero_bubble}) {
    double before = 1;
    for (const std::int64_t m : {4, 8, 16, 32, 64}) {
      PlanLayout layout = layout_of(1, 1, 4);
      layout.schedule = schedule;
      layout.micro_batches = m;
      const StepTime time = step_time(work, layout, BubbleMethod::simulated);
      EXPECT_LT(time.bubble / time.total(), before);
      before = time.bubble / time.total();
    }
  }
}

TEST(PlannerProperties, SchedulesKeepTheirOrder) {
  const PlanTask task = small_task();
  const Cluster cluster = round_cluster();
  const PlanWork work{task.model, cluster, task.software, task.precision};
  PlanLayout layout = layout_of(1, 1, 4);
  const double plain = step_time(work, layout, BubbleMethod::simulated).bubble;
  layout.schedule = PipelineSchedule::zero_bubble;
  EXPECT_LT(step_time(work, layout, BubbleMethod::simulated).bubble, plain);
  layout.schedule = PipelineSchedule::interleaved;
  layout.virtual_stages = 2;
  EXPECT_LT(step_time(work, layout, BubbleMethod::simulated).bubble, plain);
}

// The ranking's formula and the schedule that trains agree where stages are equal.
TEST(PlannerProperties, TheFormulaOfIdleTimeIsThatOfTheSchedule) {
  const PlanTask task = small_task();
  const Cluster cluster = round_cluster();
  const PlanWork work{task.model, cluster, task.software, task.precision};
  for (const PlanLayout& layout : grid()) {
    const double simulated = step_time(work, layout, BubbleMethod::simulated).total();
    const double formula = step_time(work, layout, BubbleMethod::formula).total();
    EXPECT_NEAR(formula / simulated, 1, 0.03) << layout_text(layout);
  }
}

TEST(PlannerProperties, AStepOfTwiceTheTokensTakesLonger) {
  const PlanTask task = small_task();
  const Cluster cluster = round_cluster();
  for (PlanLayout layout : grid()) {
    const double seconds = seconds_of(task, cluster, layout);
    layout.micro_batches *= 2;
    const double twice = seconds_of(task, cluster, layout);
    EXPECT_GT(twice, seconds);
    EXPECT_LE(twice, 2.2 * seconds);
  }
}

TEST(PlannerProperties, MoreLayersTakeLongerAndMoreMemory) {
  const PlanTask task = small_task();
  PlanTask deeper = task;
  deeper.model.layers *= 2;
  const Cluster cluster = round_cluster();
  for (const PlanLayout& layout : grid()) {
    EXPECT_GT(seconds_of(deeper, cluster, layout), seconds_of(task, cluster, layout));
    EXPECT_GT(bytes_of(deeper, cluster, layout), bytes_of(task, cluster, layout));
  }
}

TEST(PlannerProperties, LessFrequentFailuresGiveMoreGoodput) {
  Cluster cluster = round_cluster();
  const RunSize size{1e9, 1.0, 1e5, 4, 16};
  double before = 0;
  for (const double rate : {1000.0, 100.0, 10.0, 1.0, 0.0}) {
    cluster.failures.per_1000_node_days = rate;
    const double goodput = outlook(cluster, size).goodput;
    EXPECT_GT(goodput, before) << rate;
    EXPECT_LE(goodput, 1);
    before = goodput;
  }
  EXPECT_EQ(before, 1);
}

TEST(PlannerProperties, FasterStorageAndRelaunchGiveNoLessGoodput) {
  const RunSize size{1e9, 1.0, 1e5, 4, 16};
  Cluster cluster = round_cluster();
  cluster.failures.per_1000_node_days = 1000;
  const double before = outlook(cluster, size).goodput;
  Cluster storage = cluster;
  storage.storage.write_gb_per_s *= 10;
  Cluster relaunch = cluster;
  relaunch.failures.relaunch_seconds = 10;
  EXPECT_GE(outlook(storage, size).goodput, before);
  EXPECT_GT(outlook(relaunch, size).goodput, before);
}

TEST(PlannerProperties, DalysIntervalIsYoungsForShortSaves) {
  EXPECT_NEAR(daly_interval(1, 1e6), std::sqrt(2e6), 2);
  EXPECT_LT(daly_interval(1, 1e4), daly_interval(1, 1e5));
  EXPECT_LT(daly_interval(1, 1e5), daly_interval(2, 1e5));
  EXPECT_EQ(daly_interval(100, 10), 10);
}

TEST(PlannerProperties, EnergyMoneyAndCarbonFollowTheDays) {
  Cluster cluster = round_cluster();
  cluster.device.idle_watts = 0;  // unknown
  const Outlook one = outlook(cluster, {1e9, 1.0, 1e5, 4, 16});
  const Outlook two = outlook(cluster, {1e9, 1.0, 2e5, 4, 16});
  EXPECT_NEAR(two.days / one.days, 2, 1e-9);
  EXPECT_NEAR(two.kilowatt_hours / one.kilowatt_hours, 2, 1e-9);
  EXPECT_NEAR(two.price / one.price, 2, 1e-9);
  EXPECT_NEAR(two.co2_kilograms / one.co2_kilograms, 2, 1e-9);
  // 4 nodes x (800 + 4 x 300) W x PUE 1.25 = 10 kW; 0.2 EUR/kWh and 12 EUR per node-hour
  EXPECT_NEAR(one.kilowatt_hours, 240 * one.days, 1e-6);
  EXPECT_NEAR(one.price, one.days * (240 * 0.2 + 24 * 4 * 12), 1e-6);
}

TEST(PlannerProperties, NothingOnTheFrontIsBeaten) {
  const PlanResult result = plan_layouts(small_task(), round_cluster(), {1, 2, 4});
  int front = 0;
  for (const PlanCandidate& one : result.candidates) {
    front += one.on_front ? 1 : 0;
    for (const PlanCandidate& other : result.candidates) {
      EXPECT_FALSE(one.on_front && other.outlook.days < one.outlook.days &&
                   other.nodes <= one.nodes &&
                   other.outlook.kilowatt_hours <= one.outlook.kilowatt_hours);
    }
  }
  EXPECT_GE(front, 2);
}

TEST(PlannerProperties, CandidatesAreSortedAndFit) {
  const Cluster cluster = round_cluster();
  const PlanResult result = plan_layouts(small_task(), cluster, {4});
  ASSERT_FALSE(result.candidates.empty());
  for (std::size_t i = 0; i < result.candidates.size(); ++i) {
    const PlanCandidate& candidate = result.candidates[i];
    EXPECT_EQ(candidate.layout.ranks(), 16);
    EXPECT_EQ(candidate.layout.global_batch(), 64);
    EXPECT_EQ(layout_fault(small_task(), candidate.layout), "");
    EXPECT_TRUE(candidate.fits(cluster));
    if (i > 0) {
      EXPECT_GE(candidate.outlook.days, result.candidates[i - 1].outlook.days);
    }
  }
}

}  // namespace
}  // namespace trireme
