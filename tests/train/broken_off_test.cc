// Tests steps that break off: what the replay finds, and where the run continues. Ranks are
// threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpi/rank_fault.h"
#include "src/base/fault.h"
#include "src/train/engine/training_state.h"
#include "src/train/recovery/logged_replay.h"
#include "src/train/training_fault_sites.h"
#include "tests/support/message_of.h"
#include "tests/train/thread_run.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class BrokenOff : public testing::Test {
 protected:
  ~BrokenOff() override { arm_faults({}, 0, 1); }
  static void arm(const std::string& plan) {
    arm_faults(parse_fault_plan(plan, kTrainingFaultSites), 0, 1);
  }
  static std::vector<std::string> with(const std::vector<std::string>& more) {
    std::vector<std::string> all = {"checkpoint.every=2", "checkpoint.keep=9", "train.log_every=1"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  TrainingCounters counters() const {
    std::vector<std::string> skipped;
    return counters_of(find_step(run_.checkpoints(), skipped).manifest->meta);
  }

  ThreadRun run_;
};

// Every loss from the fifth on is NaN, also when the step is computed again.
TEST_F(BrokenOff, AStopSaysThatTheDataCausedIt) {
  arm("step.loss:0:5+:nan");
  const std::string text =
      message_of<DivergenceError>([&] { run_.train(with({"divergence.not_finite=stop"})); });
  EXPECT_THAT(text,
              AllOf(HasSubstr("step 5: loss nan"),
                    HasSubstr("replayed from step 4, it has the same bits: data or the optimizer"),
                    HasSubstr("the micro-batches with the largest losses:\n  micro-batch 0, "),
                    HasSubstr("divergence.not_finite=rewind")));
  EXPECT_THAT(run_.logged(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(run_.saved(), ElementsAre(2, 4));
}

// The loss is NaN the first time, but not when the step is computed again.
TEST_F(BrokenOff, OtherBitsAreAFaultOfTheRank) {
  arm("step.loss:0:5:nan");
  try {
    run_.train(with({"divergence.not_finite=stop"}));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const RankFault& fault) {
    EXPECT_EQ(fault.rank, 0);
    EXPECT_THAT(fault.what(),
                AllOf(HasSubstr("step 5 stood out; replayed from step 4, step 5 has different "
                                "bits"),
                      HasSubstr("the loss of micro-batch 0 was nan and is now"),
                      HasSubstr("drain the node")));
  }
}

TEST_F(BrokenOff, ARunMayDoWithoutReplays) {
  arm("step.loss:0:5:nan");
  EXPECT_THAT(message_of<DivergenceError>([&] {
                run_.train(with({"divergence.not_finite=stop", "divergence.replay_steps=0"}));
              }),
              HasSubstr("; not replayed; the micro-batches"));
}

TEST_F(BrokenOff, AReplayHasALimit) {
  arm("step.loss:0:6:nan");
  EXPECT_THAT(message_of<DivergenceError>([&] {
                run_.train(with({"divergence.not_finite=stop", "divergence.replay_steps=1",
                                 "checkpoint.every=0"}));
              }),
              HasSubstr("step 0 is further back than divergence.replay_steps 1"));
}

TEST_F(BrokenOff, ARewindLeavesOutTheDataAndGoesOn) {
  arm("step.loss:0:5:nan");
  const TrainingOutcome outcome =
      run_.train(with({"divergence.not_finite=rewind", "divergence.replay_steps=0",
                       "divergence.rewind_steps=1", "divergence.skip_batches=3"}));
  EXPECT_TRUE(outcome.finished);
  EXPECT_EQ(outcome.step, 6);
  // The run went back from the fifth step to step 2: batches 2, 3 and 4 are left out, and three
  // more.
  EXPECT_EQ(counters().left_out, (std::vector<DataWindow>{{2, 2, 6}}));
  EXPECT_EQ(counters().rewinds, 1);
  EXPECT_THAT(run_.log(), AllOf(HasSubstr("rewound to step 2; batches 2 to 7 of the data are left "
                                          "out (rewind 1 of 10)"),
                                HasSubstr("\"event\":\"rewind\"")));
  EXPECT_THAT(run_.logged(), ElementsAre(1, 2, 3, 4, 5, 6)) << "each once";
}

TEST_F(BrokenOff, RewindsAreLimited) {
  arm("step.loss:0:5+:nan");
  EXPECT_THAT(message_of<DivergenceError>([&] {
                run_.train(with({"divergence.not_finite=rewind", "divergence.replay_steps=0",
                                 "divergence.rewind_steps=0", "divergence.max_rewinds=1"}));
              }),
              HasSubstr("The run has already rewound 1 time (divergence.max_rewinds)"));
  EXPECT_EQ(counters().rewinds, 1);
}

class LoggedReplay : public BrokenOff {
 protected:
  void replay(std::int64_t last, const std::vector<std::string>& more = {}) {
    run_.on_ranks(run_.config(with(more)), 1,
                  [&](const RunConfig& config, const TrainingHost& host) {
                    replay_logged(config, host, last);
                  });
  }
};

TEST_F(LoggedReplay, ComparesTheStepsSinceTheNewestCheckpoint) {
  run_.train(with({}));
  const std::string before = read_file(RunDirectory(run_.dir()).metrics());
  const std::string digest = run_.digest();
  replay(6);
  EXPECT_THAT(run_.log(),
              AllOf(HasSubstr("replayed from step 4: 2 logged steps up to step 6 have the same "
                              "bits. If something stands out there, data or the optimizer"),
                    HasSubstr("step 5: loss ")));
  replay(1);
  EXPECT_THAT(run_.log(), HasSubstr("replayed from step 0: 1 logged step up to step 1 has the "));
  EXPECT_EQ(read_file(RunDirectory(run_.dir()).metrics()), before);
  EXPECT_EQ(run_.digest(), digest);
}

TEST_F(LoggedReplay, FindsWhatWasLoggedWithOtherBits) {
  run_.train(with({}));
  const auto path = RunDirectory(run_.dir()).metrics();
  std::string text;
  for (nlohmann::json line : run_.metrics()) {
    if (line.at("step") == 3) {
      line["grad_norm"] = line.at("grad_norm").get<double>() * 1.0001;
    }
    text += line.dump() + "\n";
  }
  write_file_durably(path, text);
  EXPECT_THAT(message_of<DeviceError>([&] { replay(4); }),
              HasSubstr("replayed from step 2, step 3 has different bits: the gradient norm was"));
  EXPECT_NO_THROW(replay(2)) << "the step is not among those";
}

TEST_F(LoggedReplay, NeedsLinesToCompare) {
  run_.train(with({}));
  EXPECT_THAT(message_of<ConfigError>([&] { replay(0); }),
              HasSubstr("--replay 0: the run has steps 1 to 6"));
  EXPECT_THROW(replay(7), ConfigError);
  // A line that a crash cut short does not count.
  write_file_durably(RunDirectory(run_.dir()).metrics(), "{\"step\": 4, \"loss\"\n[]\n");
  EXPECT_THAT(message_of<NotFound>([&] { replay(4); }),
              HasSubstr("has no line for steps 3 to 4: there is nothing to compare"));
}

TEST_F(LoggedReplay, NeedsTheDataThatARewindLeftOut) {
  arm("step.loss:0:2:nan");
  run_.train(with({"divergence.not_finite=rewind", "divergence.replay_steps=0",
                   "divergence.rewind_steps=1", "divergence.skip_batches=0"}));
  arm_faults({}, 0, 1);
  std::filesystem::remove_all(run_.checkpoints() / "step-00000000");
  EXPECT_THAT(message_of<NotFound>([&] { replay(1); }),
              HasSubstr("holds no checkpoint below step 1 from which these steps can be replayed"));
}

}  // namespace
}  // namespace trireme
