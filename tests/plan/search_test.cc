#include "src/plan/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/plan/step_parts.h"
#include "src/train/run/model_presets.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

PlanTask task_of(const char* preset, std::int64_t batch, std::int64_t sequence = 8192) {
  PlanTask task;
  task.model = plan_model(preset_model_config(preset), sequence);
  task.global_batch = batch;
  task.steps = 1000;
  return task;
}

TEST(Search, ParametersAreThoseOfTheModels) {
  EXPECT_NEAR(task_of("llama-405b", 2048).model.parameters(), 405.8e9, 1e9);
  EXPECT_NEAR(task_of("llama-8b", 2048).model.parameters(), 8.03e9, 0.05e9);
  EXPECT_NEAR(task_of("gpt2-124m", 64, 1024).model.parameters(), 123.6e6, 1e6);
}

TEST(Search, Llama405bFitsOn16384GpusOnlyWithAPipelineOrZero) {
  const PlanResult result =
      plan_layouts(task_of("llama-405b", 2048), load_cluster("h100-pod"), {2048});
  EXPECT_GT(result.tried, 1000);
  ASSERT_FALSE(result.candidates.empty());
  for (const PlanCandidate& candidate : result.candidates) {
    EXPECT_TRUE(candidate.layout.pp > 1 || candidate.layout.zero == 3);
  }
  EXPECT_FALSE(result.nearest);
}

TEST(Search, SaysWhyALayoutIsImpossible) {
  const PlanTask task = task_of("llama-8b", 96);
  const auto fault = [&](const char* text) {
    return layout_fault(task, parse_layout(text, {}, task.global_batch));
  };
  EXPECT_EQ(fault("dp=8,tp=4,pp=2"), "");
  EXPECT_THAT(fault("tp=3"), HasSubstr("heads 32 is not a multiple of tp 3"));
  EXPECT_THAT(fault("dp=3"), HasSubstr("not a power of two"));
  EXPECT_THAT(fault("pp=65"), HasSubstr("pp 65 x v 1 is more than the 2 x 32 halves"));
  EXPECT_THAT(fault("v=2"), HasSubstr("virtual stage"));
  EXPECT_THAT(fault("dp=32,pp=2,v=2,schedule=interleaved"),
              HasSubstr("a multiple of the 2 stages"));
}

TEST(Search, RefusesTextsThatAreNoLayout) {
  const auto refused = [](const char* text) {
    return message_of<ConfigError>([&] { (void)parse_layout(text, {}, 64); });
  };
  EXPECT_THAT(refused("dp"), HasSubstr("'dp' is not KEY=VALUE"));
  EXPECT_THAT(refused("dq=1"), HasSubstr("unknown key 'dq'"));
  EXPECT_THAT(refused("dp=1,tp=2,dp=2"), HasSubstr("'dp' is given twice"));
  for (const char* wrong : {"dp=0", "dp=-1", "dp=1x", "dp=", "tp=99999999999", "zero=4",
                            "recompute=some", "schedule=best", "micro_batch=1.5"}) {
    EXPECT_THAT(refused(wrong), Not(IsEmpty())) << wrong;
  }
  EXPECT_THAT(refused("dp=3"), HasSubstr("not a multiple of dp 3 x micro_batch 1 = 3"));
}

TEST(Search, SaysWhatWouldHelpIfNothingFits) {
  const PlanTask task = task_of("llama-405b", 64);
  const Cluster cluster = load_cluster("test");
  const PlanResult result = plan_layouts(task, cluster, {1});
  EXPECT_THAT(result.candidates, IsEmpty());
  ASSERT_TRUE(result.nearest);
  const auto advice = advice_to_fit(task, cluster, result, 1);
  EXPECT_THAT(advice, Contains(HasSubstr("needs least memory")));
  EXPECT_THAT(advice, Contains(HasSubstr("devices of")));
}

TEST(Search, SaysWhichMicroBatchAndRecomputationWouldHelp) {
  PlanTask task = task_of("llama-8b", 2048);
  task.micro_batch = 16;
  task.recompute = PlanRecompute::none;
  const Cluster cluster = load_cluster("test");
  const PlanResult result = plan_ranks(task, cluster, {16});
  ASSERT_TRUE(result.nearest);
  EXPECT_THAT(advice_to_fit(task, cluster, result, 4),
              Contains(HasSubstr("it would fit with train.micro_batch=")));
}

TEST(Search, SaysIfNoLayoutDividesTheBatch) {
  PlanTask task = task_of("llama-8b", 7);
  task.model.heads = 31;
  task.model.layers = 1;
  Cluster cluster = load_cluster("test");
  cluster.device.per_node = 5;
  const PlanResult result = plan_layouts(task, cluster, {1});
  EXPECT_EQ(result.tried, 0);
  EXPECT_THAT(advice_to_fit(task, cluster, result, 1), Contains(HasSubstr("no layout divides")));
}

TEST(Search, TheFrontIsAmongTheCandidatesThatAreLeft) {
  PlanResult result = plan_layouts(task_of("llama-8b", 2048), load_cluster("h100-pod"), {2, 4});
  ASSERT_GT(result.candidates.size(), 2U);
  EXPECT_TRUE(result.candidates.front().on_front);
  result.candidates.erase(result.candidates.begin());  // as if it did not fit after all
  EXPECT_FALSE(result.candidates.front().on_front);
  mark_front(result.candidates);
  EXPECT_TRUE(result.candidates.front().on_front);
}

TEST(Search, WarnsOfWhatItLeavesOutOrRestsOn) {
  PlanTask task = task_of("llama-8b", 64);
  task.model.vocab = 128 * 1024;
  const Cluster cluster = load_cluster("h100-pod");
  EXPECT_THAT(plan_warnings(task, cluster, {}), IsEmpty());
  task.has_frozen = true;
  EXPECT_THAT(plan_warnings(task, cluster, {}), ElementsAre(HasSubstr("gradients of frozen ones")));
  task.has_frozen = false;
  task.teacher = task.model;
  EXPECT_THAT(plan_warnings(task, cluster, {}), IsEmpty());
  EXPECT_THAT(layout_fault(task, {.tp = 2}), HasSubstr("a teacher (distill.teacher) needs"));
  task.teacher.reset();
  task.precision = PlanPrecision::fp8;
  Cluster own = cluster;
  own.device.fp8_tflops = 0;
  own.residual_percent = 125.8;
  EXPECT_THAT(plan_warnings(task, own, {}),
              ElementsAre(HasSubstr("no rate for fp8"), HasSubstr("125.8 %")));
}

// A teacher of the run's own shape has the forward pass of a step; on the last stage of a pipeline,
// for all micro-batches, the other stages wait for it.
TEST(Search, CountsTheForwardPassOfATeacher) {
  PlanTask task = task_of("llama-8b", 64);
  const Cluster cluster = load_cluster("h100-pod");
  for (const std::int64_t pp : {1, 4}) {
    const PlanLayout layout{.pp = pp, .micro_batches = 64};
    task.teacher.reset();
    const StepParts alone = step_parts(work_of(task, cluster), layout, BubbleMethod::simulated, {});
    task.teacher = task.model;
    const PlanWork work = work_of(task, cluster);
    const StepParts taught = step_parts(work, layout, BubbleMethod::simulated, {});
    const double forward = real(task.model.layers) * alone.block.forward.total() +
                           alone.head.forward.total() + alone.head.embedding_forward;
    EXPECT_DOUBLE_EQ(taught.teacher, forward);
    const double more = taught.time.total() - alone.time.total();
    EXPECT_GE(more, 0.99 * 64 * forward) << pp;
    EXPECT_LE(more, 1.2 * 64 * forward) << pp;
    EXPECT_THAT(explain_step(work, layout), testing::Contains(HasSubstr(", teacher ")));
  }
}

TEST(Search, WarnsOfShapesThatCostTime) {
  PlanTask task = task_of("llama-8b", 64);
  PlanLayout layout;
  layout.tp = 4;
  EXPECT_THAT(plan_warnings(task, load_cluster("h100-pod"), layout),
              Not(Contains(HasSubstr("head size"))));
  task.model.hidden = 13824;  // BigScience: 128 heads instead of 64 cost a quarter of the speed
  task.model.heads = 128;
  task.model.kv_heads = 128;
  task.model.head_dim = 108;
  task.software.materializes_attention = true;
  const auto warnings = plan_warnings(task, load_cluster("a100-jean-zay"), layout);
  EXPECT_THAT(warnings, Contains(HasSubstr("head size 108 is not a multiple of 8")));
  task.model.vocab = 50257;
  EXPECT_THAT(plan_warnings(task, load_cluster("a100-jean-zay"), layout),
              Contains(HasSubstr("vocab 50257 is not a multiple of 128 x tp 4 = 512")));
}

TEST(Search, ExplanationsEndWithTheSum) {
  const PlanTask task = task_of("llama-8b", 64);
  const Cluster cluster = load_cluster("test");
  PlanLayout layout;
  layout.dp = 4;
  layout.tp = 4;
  layout.micro_batches = 16;
  const auto lines = explain_step({task.model, cluster, task.software, task.precision}, layout);
  EXPECT_THAT(lines, Contains(HasSubstr("[8192,4096] x [4096,1536]")));
  EXPECT_THAT(lines.back(), HasSubstr("step = the sum of these terms"));
}

}  // namespace
}  // namespace trireme
