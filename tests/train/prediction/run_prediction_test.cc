// Tests the comparison that a run leaves at its end. Ranks are threads.
#include "src/train/prediction/run_prediction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/message_of.h"
#include "tests/train/thread_run.h"

namespace trireme {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

nlohmann::json prediction_of(const ThreadRun& run) {
  return parse_json(read_file(RunDirectory(run.dir()).prediction()));
}

TEST(RunPrediction, ComparesEveryPartAtTheEnd) {
  ThreadRun run;
  run.train({"plan.cluster=test", "parallel.pp=2", "model.layers=2", "train.steps=8",
             "run.name=first", "checkpoint.every=2"},
            2);
  const nlohmann::json json = prediction_of(run);
  EXPECT_EQ(json.at("cluster"), "round numbers");
  const MeasuredStep step = measured_step(json);
  EXPECT_EQ(step.name, "first");
  EXPECT_EQ(step.layout.pp, 2);
  EXPECT_EQ(step.layout.micro_batches, 4);
  EXPECT_EQ(step.model.hidden, 16);
  EXPECT_EQ(step.precision, PlanPrecision::fp32);
  EXPECT_EQ(step.steps, 8 - StepTimings::kWarmup);
  EXPECT_GT(step.measured.compute, 0);
  EXPECT_GT(step.measured.pipeline, 0) << "stages wait for each other";
  EXPECT_EQ(step.measured.tensor, 0);
  EXPECT_GT(step.measured.update, 0);
  EXPECT_GT(step.memory_bytes, 0);
  EXPECT_GT(json.at("predicted_memory_bytes"), 0);
  double terms = 0;
  for (const auto& term : json.at("predicted_terms")) {
    terms += term.get<double>();
  }
  const StepSplit predicted = step_split(json.at("predicted"));
  EXPECT_NEAR(predicted.total(), terms, 1e-12);
  EXPECT_GT(predicted.checkpoint, 0);
  EXPECT_THAT(json.at("doubts").dump(), HasSubstr("gpu")) << "the test cluster is one of GPUs";
  EXPECT_THAT(read_file(run.dir() / "logs/rank-00000.jsonl"),
              HasSubstr("\"event\":\"prediction\""));
}

TEST(RunPrediction, WithoutAClusterThereIsNone) {
  ThreadRun run;
  run.train();
  EXPECT_FALSE(std::filesystem::exists(RunDirectory(run.dir()).prediction()));
}

TEST(RunPrediction, AfterAStartWithTooFewStepsThereIsNone) {
  ThreadRun run;
  run.train({"plan.cluster=test", "train.steps=2"});
  EXPECT_FALSE(std::filesystem::exists(RunDirectory(run.dir()).prediction()));
}

TEST(RunPrediction, SaysWhyItMayBeWrong) {
  Cluster cluster;
  cluster.device.kind = "cpu";
  cluster.device.per_node = 2;
  cluster.nodes = 2;
  EXPECT_THAT(doubts_about(cluster, 4, 2, "cpu"), IsEmpty());
  EXPECT_THAT(doubts_about(cluster, 1, 1, "cpu"),
              ElementsAre(HasSubstr("2 ranks per node, and a host has 1 rank")));
  EXPECT_THAT(doubts_about(cluster, 8, 2, "cpu"), ElementsAre(HasSubstr("4 devices")));
  EXPECT_THAT(doubts_about(cluster, 2, 2, "gpu"), ElementsAre(HasSubstr("with a cpu per rank")));
}

}  // namespace
}  // namespace trireme
