#include "src/plan/simulate/run_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "slurm/journal/journal.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::HasSubstr;

AttemptAccount attempt(const char* launch, const char* cause, std::int64_t from, std::int64_t to,
                       double seconds, double detect) {
  AttemptAccount a;
  a.launch = launch;
  a.nodes = {"n1", "n2"};
  a.cause = cause;
  a.from_step = from;
  a.to_step = to;
  a.seconds = seconds;
  a.detect = detect;
  a.load = 1;
  a.first_step = 7;  // 5 s until it loads, 1 s to load, and a step of 1 s
  a.exclude = 2;
  return a;
}

// Two launches: a dead rank and a request to stop, and then a lost node and the end. Steps take a
// second, a save is due after 10 steps in memory and 40 on disk, and stalls for half a second.
Account small_account() {
  Account account;
  account.launches = 2;
  account.attempts = {attempt("a", "process_death", 0, 25, 5 + 1 + 25 + 1 + 3, 3),
                      attempt("a", "stopped", 20, 50, 5 + 1 + 30 + 2 + 4, 0),
                      attempt("b", "node_death", 50, 65, 5 + 1 + 15 + 0.5 + 8, 8),
                      attempt("b", "finished", 60, 100, 5 + 1 + 40 + 2.5 + 4, 0)};
  account.attempts[0].exclude = account.attempts[2].exclude = 0;
  const auto set = [&](TimeCause cause, double seconds) {
    account.seconds[static_cast<std::size_t>(cause)] = seconds;
  };
  set(TimeCause::start, 10 + 2);  // a second before each launch
  set(TimeCause::load, 4);
  set(TimeCause::train, 100);
  set(TimeCause::redone, 10);
  set(TimeCause::checkpoint, 6);
  set(TimeCause::detect, 11);
  set(TimeCause::exclude, 4);
  set(TimeCause::relaunch, 10);
  set(TimeCause::finish, 8);
  set(TimeCause::idle, 30);
  account.wall = account.sum();
  account.failures = 2;
  return account;
}

JobModel::Checkpoint small_settings() {
  return checkpoint_settings("checkpoint: {every: 40, memory_every: 10, partner: true}", "c.yaml");
}

TEST(RunJournal, MeasuresRatesAndTimes) {
  const RunJournal journal = run_journal(small_account(), small_settings());
  const JobModel& model = journal.model;
  EXPECT_EQ(model.nodes, 2);
  EXPECT_DOUBLE_EQ(model.step_seconds, 1);
  EXPECT_DOUBLE_EQ(model.times.start, 6);
  EXPECT_DOUBLE_EQ(model.times.relaunch, 5);
  EXPECT_DOUBLE_EQ(model.times.exclude, 2);
  EXPECT_DOUBLE_EQ(model.times.detect[static_cast<std::size_t>(JobFaultKind::process)], 3);
  EXPECT_DOUBLE_EQ(model.times.detect[static_cast<std::size_t>(JobFaultKind::node)], 8);
  EXPECT_DOUBLE_EQ(model.times.finish, 4);
  EXPECT_DOUBLE_EQ(model.checkpoint.stall, 6 / 12.0);  // 10 saves, and two at ends
  // One rank died within 195 - 30 s of two nodes.
  EXPECT_NEAR(model.rates.process, 1000 / (2 * 165 / 86400.0), 1e-6);
  EXPECT_NEAR(model.rates.node, model.rates.process, 1e-6);
  EXPECT_EQ(model.rates.hang, 0);
}

TEST(RunJournal, ItsReplayHasTheMeasuredGoodput) {
  const RunJournal journal = run_journal(small_account(), small_settings());
  const SimulatedRun replayed = simulate_job(journal.replay, journal.faults);
  EXPECT_TRUE(replayed.is_finished);
  EXPECT_EQ(replayed.launches, 4);
  EXPECT_EQ(replayed.from_memory, 2);
  EXPECT_EQ(replayed.from_disk, 1);
  EXPECT_NEAR(replayed.goodput() / journal.goodput, 1, 0.03);
}

// tests/golden/journal has the journal of a storm (tests/e2e/storm_test.py) on two cores.
TEST(RunJournal, TheReplayOfAStormHasTheMeasuredGoodput) {
  const std::filesystem::path folder =
      std::filesystem::path(TRIREME_SOURCE_DIR) / "tests/golden/journal";
  DamagedLines damaged;
  const auto events = parse_journal(read_file(folder / "journal.jsonl"), damaged);
  EXPECT_EQ(damaged.count, 0);
  const RunJournal journal = run_journal(
      account_of(events), checkpoint_settings(read_file(folder / "config.yaml"), "config.yaml"));
  EXPECT_GT(journal.faults.faults.size(), 6U);
  const SimulatedRun replayed = simulate_job(journal.replay, journal.faults);
  EXPECT_NEAR(replayed.goodput() / journal.goodput, 1, 0.03);
}

TEST(RunJournal, NeedsAnAttemptThatFinishedAStep) {
  Account account = small_account();
  EXPECT_THAT(message_of<DataError>([&] { run_journal(Account{}, small_settings()); }),
              HasSubstr("no attempt that finished a step"));
  for (AttemptAccount& a : account.attempts) {
    a.from_step = a.to_step = -1;
  }
  EXPECT_THROW(run_journal(account, small_settings()), DataError);
}

TEST(RunJournal, ReadsTheSettingsOfCheckpoints) {
  const JobModel::Checkpoint settings = checkpoint_settings(
      "train: {steps: 5}\ncheckpoint: {every: auto, partner: false}", "config.yaml");
  EXPECT_TRUE(settings.every.is("auto"));
  EXPECT_EQ(settings.memory_every.integer, 0);
  EXPECT_FALSE(settings.partner);
  EXPECT_THAT(message_of<ConfigError>(
                  [] { checkpoint_settings("checkpoint:\n  every: -3", "config.yaml"); }),
              HasSubstr("config.yaml:2: checkpoint.every is '-3'"));
  EXPECT_THROW(checkpoint_settings("checkpoint: [", "config.yaml"), ConfigError);
}

}  // namespace
}  // namespace trireme
