// Tests when a run saves, and that all ranks compute the same interval. Ranks are threads.
#include "src/train/saving/saving_policy.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpi/thread/thread_world.h"
#include "src/base/file.h"
#include "src/base/save_interval.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::HasSubstr;
using testing::Not;

RunConfig config_of(const IntegerOrWord& every, const IntegerOrWord& memory_every = {0, ""}) {
  RunConfig config;
  config.train.steps = 10000;
  config.checkpoint.every = every;
  config.checkpoint.memory_every = memory_every;
  return config;
}

// Runs a policy on each rank, and returns what rank 0 logged.
template <class Work>
std::string on_ranks(const RunConfig& config, int ranks, double mtbf_hours, const Work& work) {
  const TempFolder folder;
  ThreadWorld(ranks).run([&](Communicator& comm) {
    Log log({.rank = comm.rank(), .terminal_level = LogLevel::error, .folder = folder.path()});
    const SaveReport report(log, comm.rank(), config.train.steps);
    SavingPolicy policy(config, comm, report, mtbf_hours);
    work(policy, comm.rank());
  });
  return read_file(log_file(folder.path(), 0));
}

TEST(SavingPolicy, TheLastStepIsAlwaysDueOnDisk) {
  on_ranks(config_of({0, ""}, {5, ""}), 1, 0, [](SavingPolicy& policy, int) {
    EXPECT_FALSE(policy.disk_due(9999));
    EXPECT_TRUE(policy.disk_due(10000));
    EXPECT_TRUE(policy.memory_due(9995));
    EXPECT_FALSE(policy.memory_due(9999));
  });
}

TEST(SavingPolicy, KnowsWhereAStepIs) {
  on_ranks(config_of({5, ""}, {1, ""}), 1, 0, [](SavingPolicy& policy, int) {
    EXPECT_FALSE(policy.disk_has(0)) << "a run that starts anew has saved nothing";
    policy.start(40, false, true);
    EXPECT_FALSE(policy.disk_has(40));
    EXPECT_TRUE(policy.memory_has(40));
    policy.disk_saves(45);
    EXPECT_TRUE(policy.disk_has(45));
    EXPECT_FALSE(policy.memory_has(45));
    policy.memory_saves(45);
    EXPECT_TRUE(policy.memory_has(45));
    policy.forget_memory();
    EXPECT_FALSE(policy.memory_has(45));
    EXPECT_TRUE(policy.disk_has(45));
    policy.start(30, true, false);
    EXPECT_TRUE(policy.disk_has(30));
  });
}

// The interval is that of the slowest rank, because all figures are maxima over the ranks.
TEST(SavingPolicy, LearnsFromTheSlowestRank) {
  const auto config = config_of({0, "auto"});
  const std::string log = on_ranks(config, 3, 2, [](SavingPolicy& policy, int rank) {
    policy.start(0, false, false);
    EXPECT_TRUE(policy.disk_due(SaveSchedule::kProbeSteps));
    for (int i = 0; i < 5; ++i) {
      policy.step_took(rank == 1 ? 2 : 1);
    }
    policy.step_took(500);  // one slow step does not change the median
    policy.disk_saves(8);
    policy.learn_disk(rank == 2 ? 16 : 1, rank == 0 ? 20 : 3);
    // This is Daly's interval for 16 s and 2 h, in steps of 2 s.
    const std::int64_t interval = std::llround(best_interval(16, 7200) / 2);
    EXPECT_FALSE(policy.disk_due(8 + interval - 1));
    EXPECT_TRUE(policy.disk_due(8 + interval));
  });
  EXPECT_THAT(log, HasSubstr("a save costs 16 s and takes 20 s, a step takes 2 s, a failure is "
                             "expected every 2 h"));
}

TEST(SavingPolicy, TheConfigurationKnowsTheFailuresBest) {
  RunConfig config = config_of({0, "auto"});
  const auto log_with = [&](double mtbf_hours) {
    return on_ranks(config, 1, mtbf_hours, [](SavingPolicy& policy, int) {
      policy.step_took(1);
      policy.learn_disk(1, 1);
    });
  };
  EXPECT_THAT(log_with(0), HasSubstr("expected every 24 h"));
  EXPECT_THAT(log_with(6), HasSubstr("expected every 6 h"));
  config.checkpoint.mtbf = 3;
  EXPECT_THAT(log_with(6), HasSubstr("expected every 3 h"));
}

TEST(SavingPolicy, AFixedIntervalLearnsNothing) {
  const std::string log =
      on_ranks(config_of({5, ""}, {0, "auto"}), 2, 0, [](SavingPolicy& policy, int) {
        policy.step_took(1);
        policy.learn_disk(1000, 1000);
        EXPECT_TRUE(policy.disk_due(5));
        policy.learn_memory(0.001, 1);
      });
  EXPECT_THAT(log, Not(HasSubstr("checkpoint.every")));
  EXPECT_THAT(log, HasSubstr("checkpoint.memory_every: every "));
}

// The newest 33 steps count: what was slow at the start is forgotten.
TEST(SavingPolicy, ForgetsOldSteps) {
  const std::string log = on_ranks(config_of({0, "auto"}), 1, 0, [](SavingPolicy& policy, int) {
    for (int i = 0; i < 33; ++i) {
      policy.step_took(9);
    }
    for (int i = 0; i < 17; ++i) {
      policy.step_took(3);
    }
    policy.learn_disk(1, 1);
  });
  EXPECT_THAT(log, HasSubstr("a step takes 3 s"));
}

}  // namespace
}  // namespace trireme
