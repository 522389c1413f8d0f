// Tests whole runs of a few steps: the files that they leave, and how they end. Ranks are threads.
#include "src/train/training.h"

#include <chrono>
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/checkpoint/disk_target.h"
#include "io/checkpoint/writer.h"
#include "src/base/fault.h"
#include "src/train/training_fault_sites.h"
#include "tests/support/message_of.h"
#include "tests/train/thread_run.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Armed installs a fault plan for one test.
class Armed {
 public:
  explicit Armed(const std::string& plan) {
    arm_faults(parse_fault_plan(plan, kTrainingFaultSites), 0, 1);
  }
  ~Armed() { arm_faults({}, 0, 1); }
  Armed(const Armed&) = delete;
  Armed& operator=(const Armed&) = delete;
};

TEST(Training, LogsSavesAndMarksTheEnd) {
  ThreadRun run;
  const TrainingOutcome outcome =
      run.train({"train.steps=5", "checkpoint.every=2", "checkpoint.keep=2"});
  EXPECT_TRUE(outcome.finished);
  EXPECT_EQ(outcome.step, 5);
  EXPECT_EQ(outcome.stop_signal, 0);
  EXPECT_THAT(run.logged(), ElementsAre(2, 4, 5)) << "the last step is logged in any case";
  EXPECT_THAT(run.saved(), ElementsAre(4, 5)) << "and saved";
  EXPECT_EQ(RunDirectory(run.dir()).done_step(), 5);
  const nlohmann::json last = run.metrics().back();
  EXPECT_EQ(last.at("tokens"), 5 * 4 * 8);
  EXPECT_EQ(last.at("skipped_steps"), 0);
  EXPECT_FALSE(last.contains("val_loss"));
  EXPECT_GT(last.at("mfu"), 0);
  EXPECT_LE(last.at("mfu"), 1);
}

TEST(Training, OneLineIsTheMeanOfItsSteps) {
  ThreadRun each;
  each.train({"train.log_every=1"});
  ThreadRun some;
  some.train({"train.log_every=3"});
  const auto one = each.metrics();
  const auto three = some.metrics();
  ASSERT_EQ(one.size(), 6U);
  ASSERT_EQ(three.size(), 2U);
  for (std::size_t line = 0; line < 2; ++line) {
    double sum = 0;
    for (std::size_t i = 3 * line; i < 3 * line + 3; ++i) {
      sum += one[i].at("loss").get<double>();
    }
    EXPECT_DOUBLE_EQ(three[line].at("loss_mean"), sum / 3);
    EXPECT_EQ(three[line].at("loss_bits"), one[3 * line + 2].at("loss_bits"));
  }
}

TEST(Training, TheTimeThatALineTakesCountsInTheNext) {
  constexpr std::chrono::milliseconds kWriting{40};
  ThreadRun run;
  run.on_ranks(run.config({"train.steps=3", "train.log_every=1"}), 1,
               [&](const RunConfig& config, const TrainingHost& host) {
                 TrainingHost slow = host;
                 slow.observe = [&](const StepMetrics&) { std::this_thread::sleep_for(kWriting); };
                 (void)Training(config, slow).run();
               });
  const auto lines = run.metrics();
  ASSERT_EQ(lines.size(), 3U);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    EXPECT_GE(lines[i].at("step_ms"), kWriting.count());
  }
}

TEST(Training, ASignalEndsItBehindTheStepAndTheNextStartGoesOn) {
  ThreadRun whole;
  whole.train();
  ThreadRun run;
  run.signal = SIGUSR1;
  const TrainingOutcome stopped = run.train();
  EXPECT_EQ(stopped.stop_signal, SIGUSR1);
  EXPECT_EQ(stopped.step, 1);
  EXPECT_FALSE(stopped.finished);
  EXPECT_THAT(run.saved(), ElementsAre(1));
  EXPECT_EQ(RunDirectory(run.dir()).done_step(), std::nullopt);
  run.signal = 0;
  EXPECT_TRUE(run.train({}, 2).finished);
  EXPECT_EQ(run.digest(), whole.digest());
  EXPECT_EQ(run.metrics().back().at("loss_bits"), whole.metrics().back().at("loss_bits"));
}

TEST(Training, TheEndOfTheJobEndsItOnAllRanks) {
  ThreadRun run;
  run.limit = TimeLimit(TimeLimit::Clock::now() + std::chrono::seconds(100), 1000);
  const TrainingOutcome outcome = run.train({}, 2);
  EXPECT_EQ(outcome.stop_signal, kTimeLimitSignal);
  EXPECT_EQ(outcome.step, 1);
  EXPECT_THAT(run.log(), HasSubstr("the job ends in less than 1000 s: saving a checkpoint"));
}

TEST(Training, SkippedStepsAreCountedAndWarnedOf) {
  ThreadRun run;
  {
    const Armed armed("step.loss:0:6:nan");
    EXPECT_TRUE(run.train({"train.max_skipped_steps=1"}).finished);
  }
  EXPECT_EQ(run.metrics().back().at("skipped_steps"), 1);
  EXPECT_TRUE(run.metrics().back().at("loss").is_null());
  EXPECT_THAT(run.log(),
              AllOf(HasSubstr("step 6: loss nan, gradient norm"),
                    HasSubstr("skipped, weights and moments are unchanged (1 in a row, 1 allowed)"),
                    HasSubstr("step 6: the run ends with 1 step whose update was skipped"),
                    HasSubstr("the weights are those after step 5")));
}

TEST(Training, TooManySkippedStepsEndItWithoutThem) {
  ThreadRun run;
  const Armed armed("step.loss:0:3+:nan");
  const std::string text = message_of<DivergenceError>([&] {
    run.train({"train.max_skipped_steps=1", "checkpoint.every=2"});
  });
  EXPECT_THAT(
      text, AllOf(HasSubstr("step 4: the loss (nan)"), HasSubstr("was not finite 2 times in a row"),
                  HasSubstr("checkpoint.resume=STEP")));
  EXPECT_THAT(run.saved(), ElementsAre(2)) << "step 4 is due, but not worth saving";
  EXPECT_EQ(RunDirectory(run.dir()).done_step(), std::nullopt);
}

// Writes the newest step again, with NaN in every tensor.
void fill_newest_step_with_nan(const ThreadRun& run) {
  std::vector<std::string> skipped;
  const Manifest manifest = *find_step(run.checkpoints(), skipped).manifest;
  std::vector<std::vector<std::byte>> buffers;
  std::vector<TensorBlock> blocks;
  for (const StoredTensor& tensor : manifest.tensors) {
    buffers.emplace_back(static_cast<std::size_t>(tensor.bytes()), std::byte{0xFF});
    blocks.push_back({tensor.name,
                      tensor.shape,
                      Extent::whole(tensor.shape),
                      {buffers.back().data(), tensor.shape.elements(), tensor.dtype}});
  }
  ThreadWorld(1).run([&](Communicator& comm) {
    DiskTarget target(comm, {.folder = run.checkpoints()});
    CheckpointWriter writer(comm, target);
    writer.save(manifest.meta, blocks);
    EXPECT_TRUE(writer.finish()->durable);
  });
}

TEST(Training, ACheckpointWithNanIsSkippedLikeADamagedOne) {
  ThreadRun run;
  run.train({"checkpoint.every=4"});
  EXPECT_THAT(run.saved(), ElementsAre(4, 6));
  const std::string digest = run.digest();
  fill_newest_step_with_nan(run);
  EXPECT_TRUE(run.train({"checkpoint.every=4"}).finished);
  EXPECT_THAT(run.log(), HasSubstr("contains NaN (the run had diverged"));
  EXPECT_EQ(run.digest(), digest);
}

TEST(Training, EvaluatesAtIntervalsAndAtTheEnd) {
  ThreadRun run;
  run.train({"data.validation=" + run.data().string(), "train.eval_every=4", "train.eval_samples=5",
             "train.log_every=3"});
  EXPECT_THAT(run.logged(), ElementsAre(3, 4, 6));
  const auto lines = run.metrics();
  EXPECT_FALSE(lines[0].contains("val_loss"));
  EXPECT_GT(lines[1].at("val_loss"), lines[2].at("val_loss")) << "it learns what it is shown";
}

TEST(Training, KeepsTheBestStepsBesideTheNewest) {
  ThreadRun run;
  run.train({"data.validation=" + run.data().string(), "train.eval_every=1", "train.steps=5",
             "optimizer.lr=1", "checkpoint.keep_best=1"});
  std::int64_t best = 0;
  double least = 1e9;
  for (const nlohmann::json& line : run.metrics()) {
    if (line.at("val_loss").get<double>() < least) {
      least = line.at("val_loss").get<double>();
      best = line.at("step").get<std::int64_t>();
    }
  }
  EXPECT_THAT(run.saved(), testing::IsSupersetOf({best, std::int64_t{5}}));
}

TEST(Training, EndsEarlyWithoutImprovement) {
  ThreadRun run;
  const TrainingOutcome outcome =
      run.train({"data.validation=" + run.data().string(), "train.eval_every=2",
                 "train.early_stop.patience=1", "train.early_stop.min_delta=100"});
  EXPECT_TRUE(outcome.finished);
  EXPECT_EQ(outcome.step, 4) << "the first evaluation is what the second is compared with";
  EXPECT_THAT(outcome.early_stop, AllOf(HasSubstr("by more than 100 in the last 1 evaluation "),
                                        HasSubstr("(train.early_stop.patience 1)")));
  EXPECT_EQ(RunDirectory(run.dir()).done_step(), 4);
  EXPECT_THAT(read_file(run.dir() / "DONE"), HasSubstr("early_stop"));
  EXPECT_THAT(run.log(), HasSubstr("stopped early at step 4"));
}

// A job that got a signal may have only seconds left, so the next start evaluates the step.
TEST(Training, AStopPutsTheEvaluationOff) {
  ThreadRun run;
  const std::vector<std::string> evaluates = {"data.validation=" + run.data().string(),
                                              "train.eval_every=1", "train.steps=2"};
  run.signal = SIGTERM;
  EXPECT_EQ(run.train(evaluates).step, 1);
  ASSERT_EQ(run.metrics().size(), 1U);
  EXPECT_FALSE(run.metrics().front().contains("val_loss"));
  run.signal = 0;
  run.train(evaluates);
  EXPECT_THAT(run.logged(), ElementsAre(1, 2));
  EXPECT_TRUE(run.metrics().front().contains("val_loss"));
  ThreadRun whole;
  std::vector<std::string> same = evaluates;
  same.front() = "data.validation=" + whole.data().string();
  whole.train(same);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(run.metrics()[i].at("val_loss_bits"), whole.metrics()[i].at("val_loss_bits")) << i;
  }
}

TEST(Training, AResumedRunForgetsLinesBehindItsCheckpoint) {
  ThreadRun run;
  const std::vector<std::string> keys = {"checkpoint.every=2", "train.log_every=1",
                                         "checkpoint.async=false"};
  {
    const Armed armed("step.end:0:4:throw");
    EXPECT_THROW(run.train(keys), std::runtime_error);
  }
  EXPECT_THAT(run.logged(), ElementsAre(1, 2, 3));
  run.train(keys);
  EXPECT_THAT(run.logged(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(run.log(), HasSubstr("\"event\":\"resumed\""));
}

TEST(Training, RefusesMisspeltFieldsThatMayChange) {
  ThreadRun run;
  EXPECT_THAT(
      message_of<ConfigError>([&] { run.train({"checkpoint.allow_change=[model.dropot]"}); }),
      AllOf(HasSubstr("unknown field 'model.dropot'"), HasSubstr("did you mean model.dropout?")));
  EXPECT_TRUE(run.train({"checkpoint.allow_change=[model,optimizer.lr]"}).finished);
}

TEST(Training, MemoryCheckpointsNeedAFolderOfTheNode) {
  ThreadRun run;
  EXPECT_TRUE(run.train({"checkpoint.memory_every=2"}).finished);
  EXPECT_THAT(run.log(), AllOf(HasSubstr("TRIREME_NODE_DIR is not set on every rank"),
                               Not(HasSubstr("memory_checkpoint"))));
}

}  // namespace
}  // namespace trireme
