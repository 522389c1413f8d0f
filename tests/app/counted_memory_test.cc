// Compares the memory of planned layouts as the engine counts it with the planner's formulas.
#include "src/app/plan/counted_memory.h"

#include <gtest/gtest.h>

#include "src/base/file.h"
#include "src/plan/planned_run.h"
#include "src/train/memory/memory_plan.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

RunConfig gpt2_run(const std::vector<std::string>& arguments = {}) {
  const TempFolder folder;
  const std::filesystem::path file = folder.path() / "run.yaml";
  write_named_file(file.string(),
                   "model: {preset: gpt2-124m}\n"
                   "data: {train: data, sequence: 1024}\n"
                   "train: {steps: 100, global_batch: 16, micro_batch: 2, device: cpu}\n"
                   "run: {dir: run}\n");
  return load_run_config({.file = file, .arguments = arguments, .site = {}}).config;
}

TEST(CountedMemory, TheEngineCountsWhatTheFormulasEstimate) {
  const RunConfig run = gpt2_run();
  Cluster cluster = load_cluster("test");
  cluster.device.kind = "cpu";
  const PlanTask task = plan_task(run);
  for (const char* text : {"dp=1", "dp=2", "dp=2,zero=1", "dp=2,zero=2", "dp=2,zero=3", "tp=2",
                           "pp=2", "dp=2,recompute=full"}) {
    PlanLayout base;
    base.micro_batch = 2;
    const PlanLayout layout = parse_layout(text, base, task.global_batch);
    const auto counted = counted_memory(run, cluster, layout);
    ASSERT_TRUE(counted) << text;
    const PlannedMemory formula =
        rank_memory({task.model, cluster, task.software, task.precision}, layout);
    EXPECT_NEAR(formula.total() / counted->total(), 1, 0.25) << text;
    // The formulas take the most of each part over the stages, the count the fullest stage, which
    // need not be the one with the most parameters.
    const double most_above = layout.pp == 1 ? 1.05 : 2;
    for (const double ratio :
         {formula.parameters / counted->parameters, formula.optimizer / counted->optimizer}) {
      EXPECT_GT(ratio, 0.95) << text;
      EXPECT_LT(ratio, most_above) << text;
    }
    // It is what the run itself will predict.
    const RunConfig own = with_layout(run, layout);
    const Layout made = make_layout(own, static_cast<int>(layout.ranks()), 2);
    const std::vector<std::int64_t> at_start(static_cast<std::size_t>(layout.ranks()),
                                             cluster.device.reserved_memory);
    double most = 0;
    for (const MemoryPlan& plan : plan_memory_of_all(own, made, at_start)) {
      most = std::max(most, static_cast<double>(plan.total()));
    }
    EXPECT_NEAR(counted->total() / most, 1, 0.01) << text;
  }
}

// A rank keeps a sum of gradients for each level of the tree over its micro-batches.
TEST(CountedMemory, GradientsOfManyMicroBatches) {
  const RunConfig run = gpt2_run({"train.global_batch=64", "train.micro_batch=1"});
  Cluster cluster = load_cluster("test");
  cluster.device.kind = "cpu";
  const PlanTask task = plan_task(run);
  ASSERT_TRUE(task.software.sums_in_tree);
  for (const char* text : {"dp=1", "dp=2", "dp=4,zero=1", "dp=4,zero=2", "pp=2", "dp=2,tp=2"}) {
    const PlanLayout layout = parse_layout(text, PlanLayout(), task.global_batch);
    const auto counted = counted_memory(run, cluster, layout);
    ASSERT_TRUE(counted) << text;
    const PlannedMemory formula =
        rank_memory({task.model, cluster, task.software, task.precision}, layout);
    if (layout.zero < 2) {  // else the engine counts buckets that are moving as gradients
      EXPECT_NEAR(formula.gradients / counted->gradients, 1, 0.15) << text;
    }
    EXPECT_NEAR(formula.total() / counted->total(), 1, 0.25) << text;
  }
}

// The least layout of a plan in which none fits has the engine's count, by which the advice goes.
TEST(CountedMemory, WhatWouldHelpIsCounted) {
  const RunConfig run = gpt2_run({"train.global_batch=64", "train.micro_batch=1"});
  Cluster cluster = load_cluster("test");
  cluster.device.memory = std::int64_t{1} << 30;
  PlanResult result = plan_layouts(plan_task(run), cluster, {1});
  count_memory(run, cluster, 10, result);
  ASSERT_TRUE(result.nearest);
  EXPECT_TRUE(result.nearest->is_counted);
}

TEST(CountedMemory, LayoutsBeyondReachKeepTheirFormulas) {
  const RunConfig run = gpt2_run({"train.global_batch=262144", "train.micro_batch=1"});
  const auto layout = [&](const char* text) {
    return parse_layout(text, PlanLayout(), run.train.global_batch);
  };
  const Cluster cluster = load_cluster("test");
  EXPECT_FALSE(counted_memory(run, cluster, layout("dp=1")));
  EXPECT_TRUE(counted_memory(run, cluster, layout("dp=8192,tp=4")));
  EXPECT_FALSE(counted_memory(run, cluster, layout("dp=8192,tp=5"))) << "12 heads";
}

}  // namespace
}  // namespace trireme
