// Tests what rank 0 writes about saves and resumes, and that the other ranks write nothing.
#include "src/train/saving/save_report.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/file.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

// The lines of a log, without the first, which says where it was written.
class SaveReportTest : public testing::Test {
 protected:
  template <class Call>
  std::vector<nlohmann::json> lines(const Call& call, int rank = 0) {
    const TempFolder folder;
    {
      Log log({.rank = rank, .terminal_level = LogLevel::error, .folder = folder.path()});
      call(SaveReport(log, rank, 100));
    }
    std::vector<nlohmann::json> all;
    std::istringstream text(read_file(log_file(folder.path(), rank)));
    for (std::string line; std::getline(text, line);) {
      all.push_back(nlohmann::json::parse(line));
    }
    all.erase(all.begin());
    return all;
  }
  static SaveOutcome durable(std::int64_t step) {
    SaveOutcome outcome;
    outcome.step = step;
    outcome.durable = true;
    outcome.bytes = 3 << 20;
    outcome.seconds = 75;
    return outcome;
  }
};

TEST_F(SaveReportTest, ASaveOnDiskHasItsFigures) {
  const auto all = lines([](const SaveReport& report) { report.disk(durable(40), 0.25, 3); });
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].at("event"), "checkpoint");
  EXPECT_EQ(all[0].at("step"), 40);
  EXPECT_EQ(all[0].at("bytes"), 3 << 20);
  EXPECT_EQ(all[0].at("seconds"), 75.0);
  EXPECT_EQ(all[0].at("stall_ms"), 250.0);
  EXPECT_EQ(all[0].at("waits"), 3);
  EXPECT_EQ(all[1].at("message"), "saved step 40: 3 MiB in 1m15s");
  SaveOutcome warned = durable(40);
  warned.message = "one shard was slow";
  EXPECT_EQ(lines([&](const SaveReport& report) { report.disk(warned, 0, 0); })[1].at("message"),
            "saved step 40: 3 MiB in 1m15s; one shard was slow");
}

TEST_F(SaveReportTest, AFailedSaveIsAnErrorAndTrainingContinues) {
  SaveOutcome failed;
  failed.step = 99;
  failed.message = "the disk is full";
  const auto before = lines([&](const SaveReport& report) { report.disk(failed, 0, 0); });
  ASSERT_EQ(before.size(), 1U) << "no event: nothing was saved";
  EXPECT_EQ(before[0].at("level"), "error");
  EXPECT_EQ(before[0].at("message"),
            "step 99 could not be saved, training continues: the disk is full");
  failed.step = 100;
  EXPECT_EQ(lines([&](const SaveReport& report) { report.disk(failed, 0, 0); })[0].at("message"),
            "step 100 could not be saved: the disk is full");
}

TEST_F(SaveReportTest, SavesInMemoryAreQuietUnlessSomethingIsWrong) {
  const auto good = lines([](const SaveReport& report) { report.memory(durable(8), 0.5); });
  ASSERT_EQ(good.size(), 1U);
  EXPECT_EQ(good[0].at("event"), "memory_checkpoint");
  EXPECT_EQ(good[0].at("stall_ms"), 500.0);
  SaveOutcome outcome = durable(8);
  outcome.message = "no room";
  const auto warned = lines([&](const SaveReport& report) { report.memory(outcome, 0); });
  ASSERT_EQ(warned.size(), 2U);
  EXPECT_EQ(warned[0].at("level"), "warning");
  EXPECT_EQ(warned[0].at("message"), "step 8 was saved in memory, training continues: no room");
  outcome.durable = false;
  const auto lost = lines([&](const SaveReport& report) { report.memory(outcome, 0); });
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].at("message"), "step 8 was not saved in memory, training continues: no room");
}

TEST_F(SaveReportTest, AnIntervalIsReportedInHours) {
  const auto all = lines([](const SaveReport& report) {
    report.interval("checkpoint.every", "every 20 steps", 20,
                    {.cost = 1, .least = 2, .step = 4, .mtbf = 7200});
  });
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].at("message"), "checkpoint.every: every 20 steps");
  EXPECT_EQ(all[1].at("key"), "checkpoint.every");
  EXPECT_EQ(all[1].at("steps"), 20);
  EXPECT_EQ(all[1].at("cost_seconds"), 1.0);
  EXPECT_EQ(all[1].at("least_seconds"), 2.0);
  EXPECT_EQ(all[1].at("step_seconds"), 4.0);
  EXPECT_EQ(all[1].at("mtbf_hours"), 2.0);
}

TEST_F(SaveReportTest, AResumeNamesWhatWasPassedOver) {
  Resumed resumed;
  resumed.folder = "/c/step-00000040";
  resumed.manifest.meta.step = 40;
  resumed.manifest.generation = 6;
  resumed.skipped = {"step 60: damaged"};
  resumed.repairs = {"shard 1 of rank 2"};
  resumed.bytes.front() = 1 << 20;
  resumed.bytes.back() = 1 << 20;
  resumed.load.seconds = 2;
  const auto all = lines([&](const SaveReport& report) { report.resumed(resumed); });
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].at("message"), "skipped step 60: damaged");
  EXPECT_EQ(all[1].at("message"), "used another copy of a damaged file: shard 1 of rank 2");
  EXPECT_EQ(all[2].at("event"), "resumed");
  EXPECT_EQ(all[2].at("generation"), 6);
  EXPECT_EQ(all[2].at("from_memory"), false);
  EXPECT_EQ(all[3].at("message"), "resumed from /c/step-00000040: 2 MiB in 2.0s");
}

TEST_F(SaveReportTest, OtherRanksSayNothing) {
  EXPECT_TRUE(lines(
                  [](const SaveReport& report) {
                    report.warning("w");
                    report.disk(durable(1), 0, 0);
                    report.disk({.step = 1, .message = "m"}, 0, 0);
                    report.memory({.step = 1, .message = "m"}, 0);
                    report.interval("k", "t", 1, {});
                    report.resumed({});
                  },
                  1)
                  .empty());
}

}  // namespace
}  // namespace trireme
