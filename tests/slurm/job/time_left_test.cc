#include "slurm/job/time_left.h"

#include <cstdlib>
#include <ctime>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

TEST(TimeLeft, Times) {
  EXPECT_EQ(parse_slurm_time("59"), seconds(59 * 60));
  EXPECT_EQ(parse_slurm_time("3:04"), seconds(184));
  EXPECT_EQ(parse_slurm_time("02:03:04"), seconds(7384));
  EXPECT_EQ(parse_slurm_time("1-02:03:04"), seconds(86400 + 7384));
  EXPECT_EQ(parse_slurm_time("2-1"), seconds(2 * 86400 + 3600));
  EXPECT_EQ(parse_slurm_time("2-1:30"), seconds(2 * 86400 + 5400));
  EXPECT_EQ(parse_slurm_time("0:00"), seconds(0));
  EXPECT_EQ(parse_slurm_time("90:30"), seconds(5430));
}

TEST(TimeLeft, WhatIsNoTime) {
  for (const char* text :
       {"",      "UNLIMITED", "NOT_SET", "INVALID", "1:",      ":1",    "1-",
        "-1",    "1--2",      "1:2:3:4", "1:2:3 ",  "1:-2",    "1.5",   "99999999999999999999",
        "1-2-3", "5000000",   "1:70:99", "1:60",    "1:00:60", "2-1:60"}) {
    EXPECT_FALSE(parse_slurm_time(text)) << text;
  }
}

TEST(TimeLeft, FromTheEnvironment) {
  SlurmJob job;
  job.end_seconds = std::time(nullptr) + 100;
  const TimeLeft left = time_left(job);
  ASSERT_TRUE(left.seconds);
  EXPECT_NEAR(static_cast<double>(left.seconds->count()), 100, 5);
}

// Squeue is a fake squeue, which is first in PATH.
class Squeue {
 public:
  explicit Squeue(const std::string& script) : path_(std::getenv("PATH")) {
    const auto file = folder_.path() / "squeue";
    std::ofstream(file) << "#!/bin/sh\n" << script << "\n";
    ::chmod(file.c_str(), 0755);
    ::setenv("PATH", (folder_.path().string() + ":" + path_).c_str(), 1);
  }
  ~Squeue() { ::setenv("PATH", path_.c_str(), 1); }

 private:
  std::string path_;
  TempFolder folder_;
};

TEST(TimeLeft, FromSqueue) {
  SlurmJob job;
  job.command_id = "7";
  {
    const Squeue squeue(R"([ "$3" = 7 ] && echo "  1:30")");
    EXPECT_EQ(time_left(job).seconds, seconds(90));
  }
  {
    const Squeue squeue("echo UNLIMITED");
    const TimeLeft left = time_left(job);
    EXPECT_FALSE(left.seconds);
    EXPECT_EQ(left.trouble, "");
  }
  {
    const Squeue squeue("echo slurm_load_jobs error: no controller >&2; exit 1");
    const TimeLeft left = time_left(job);
    EXPECT_FALSE(left.seconds);
    EXPECT_THAT(left.trouble, HasSubstr("no controller"));
  }
  {
    const Squeue squeue("echo nonsense");
    EXPECT_THAT(time_left(job).trouble, HasSubstr("nonsense"));
  }
}

}  // namespace
}  // namespace trireme
