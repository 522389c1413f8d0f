#include "src/train/ending/job_end.h"

#include <map>

#include <gtest/gtest.h>

#include "src/train/run/run_directory.h"

namespace trireme {
namespace {

EnvironmentLookup lookup(const std::map<std::string, std::string>& values) {
  return [values](const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(JobEnd, IsUnknownOutsideAJob) {
  const JobEnd end = find_job_end(lookup({}));
  EXPECT_FALSE(end.time.has_value());
  EXPECT_EQ(end.trouble, "");
}

// Newer versions of Slurm report when the job ends.
TEST(JobEnd, IsWhatSlurmSaysToTheFirstRankAlone) {
  const auto seconds = static_cast<std::int64_t>(wall_clock_seconds()) + 5000;
  std::map<std::string, std::string> job = {{"SLURM_JOB_ID", "42"},
                                            {"SLURM_JOB_NODELIST", "node1"},
                                            {"SLURM_JOB_END_TIME", std::to_string(seconds)}};
  const JobEnd end = find_job_end(lookup(job));
  ASSERT_TRUE(end.time.has_value()) << end.trouble;
  const std::chrono::duration<double> left = *end.time - std::chrono::steady_clock::now();
  EXPECT_NEAR(left.count(), 5000, 600);
  job["PMIX_RANK"] = "0";
  EXPECT_TRUE(find_job_end(lookup(job)).time.has_value());
  job["PMIX_RANK"] = "1";
  EXPECT_FALSE(find_job_end(lookup(job)).time.has_value());
}

}  // namespace
}  // namespace trireme
