#include "src/plan/simulate/save_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kLog =
    R"({"event":"start","pid":7}
{"event":"checkpoint","seconds":0.5,"stall_ms":10,"step":20}
{"event":"checkpoint","seconds":1e308,"stall_ms":10,"step":40}
{"event":"checkpoint","seconds":-1,"stall_ms":10,"step":40}
{"event":"checkpoint","seconds":"x","stall_ms":10,"step":40}
{"event":"checkpoint","seconds":
{"message":"no \"checkpoint\""}
{"event":"memory_checkpoint","seconds":0.25,"stall_ms":2,"step":5}
{"event":"checkpoint","seconds":0.7,"stall_ms":30,"step":40}
{"event":"checkpoint","seconds":0.6,"stall_ms":20,"step":20})";

TEST(SaveTimes, AreTheMeansOfTheRunsSaves) {
  SaveTimes times;
  times.add_log(kLog);
  EXPECT_EQ(times.disk.saves, 3);
  EXPECT_NEAR(times.disk.seconds, 0.6, 1e-12);
  EXPECT_NEAR(times.disk.stall_seconds, 0.02, 1e-12);
  EXPECT_EQ(times.disk.steps, 20);
  EXPECT_EQ(times.memory.saves, 1);
  EXPECT_DOUBLE_EQ(times.memory.seconds, 0.25);
  EXPECT_EQ(times.memory.steps, 0);
  times.add_log("");
  times.add_log("\n\0checkpoint\"\n");
  EXPECT_EQ(times.disk.saves, 3);
}

TEST(SaveTimes, TellHowOftenARunSaved) {
  SaveTimes times;
  EXPECT_TRUE(times.observed_settings().every.is("auto"));
  EXPECT_TRUE(times.observed_settings().memory_every.is("auto"));
  times.add_log(R"({"event":"checkpoint","seconds":1,"stall_ms":1,"step":30}
{"event":"checkpoint","seconds":1,"stall_ms":1,"step":60})");
  EXPECT_EQ(times.observed_settings().every.integer, 30);
  EXPECT_FALSE(times.observed_settings().memory_every.is("auto"));
  EXPECT_EQ(times.observed_settings().memory_every.integer, 0);
}

TEST(SaveTimes, ReplaceTheDefaultsOfAModel) {
  SaveTimes times;
  JobModel::Checkpoint checkpoint;
  checkpoint.every = {20, ""};
  checkpoint.memory_every = {0, ""};
  checkpoint.stall = 0.1;
  EXPECT_THAT(use_save_times(times, checkpoint),
              ElementsAre(HasSubstr("checkpoint.disk_seconds is assumed to be 180 s")));
  EXPECT_EQ(checkpoint.disk_seconds, 180);
  times.add_log(kLog);
  EXPECT_THAT(use_save_times(times, checkpoint),
              ElementsAre("3 saves on disk in the run took 0.6 s on average and stopped training "
                          "for 0.02 s"));
  EXPECT_NEAR(checkpoint.disk_seconds, 0.6, 1e-12);
  EXPECT_EQ(checkpoint.memory_seconds, 0.25);
  EXPECT_EQ(checkpoint.stall, 0.1);  // the journal knows better
  checkpoint.memory_every = {0, "auto"};
  EXPECT_EQ(use_save_times(times, checkpoint).size(), 2U);
  EXPECT_EQ(checkpoint.memory_seconds, 0.25);
  EXPECT_EQ(checkpoint.stall, 0.002);
}

}  // namespace
}  // namespace trireme
