#include "slurm/job/job_environment.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

SlurmEnvironment of(std::map<std::string, std::string> variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(JobEnvironment, OutsideOfAJob) { EXPECT_FALSE(slurm_job(of({{"SLURM_CONF", "/x"}}))); }

TEST(JobEnvironment, ABatchScript) {
  const auto job = slurm_job(of({{"SLURM_JOB_ID", "42"},
                                 {"SLURM_JOB_NAME", "first"},
                                 {"SLURM_JOB_NODELIST", "n[1-2]"},
                                 {"SLURMD_NODENAME", "n1"},
                                 {"SLURM_JOB_PARTITION", "main"}}));
  ASSERT_TRUE(job);
  EXPECT_EQ(job->id, 42);
  EXPECT_EQ(job->command_id, "42");
  EXPECT_EQ(job->name, "first");
  EXPECT_THAT(job->nodes, ElementsAre("n1", "n2"));
  EXPECT_EQ(job->node, "n1");
  EXPECT_EQ(job->partition, "main");
  EXPECT_EQ(job->restart_count, 0);
  EXPECT_FALSE(job->step);
  EXPECT_FALSE(job->end_seconds);
}

TEST(JobEnvironment, ARestartedArrayTasksStep) {
  const auto job = slurm_job(of({{"SLURM_JOB_ID", "43"},
                                 {"SLURM_RESTART_COUNT", "2"},
                                 {"SLURM_STEP_ID", "1"},
                                 {"SLURM_STEP_NUM_TASKS", "8"},
                                 {"SLURM_ARRAY_JOB_ID", "40"},
                                 {"SLURM_ARRAY_TASK_ID", "5"},
                                 {"SLURM_JOB_END_TIME", "1700000000"}}));
  EXPECT_EQ(job->restart_count, 2);
  EXPECT_EQ(job->step, 1);
  EXPECT_EQ(job->step_tasks, 8);
  EXPECT_EQ(job->array_task, 5);
  EXPECT_EQ(job->command_id, "40_5");
  EXPECT_EQ(job->end_seconds, 1700000000);
}

TEST(JobEnvironment, NamesTheVariableThatIsWrong) {
  for (const char* name : {"SLURM_JOB_ID", "SLURM_RESTART_COUNT", "SLURM_STEP_ID",
                           "SLURM_JOB_END_TIME", "SLURM_ARRAY_TASK_ID"}) {
    for (const char* value : {"x", "1x", "-1", "99999999999999999999", " 1", "0x10"}) {
      std::map<std::string, std::string> variables = {{"SLURM_JOB_ID", "1"}};
      variables[name] = value;
      EXPECT_THAT(message_of<ConfigError>([&] { slurm_job(of(variables)); }), HasSubstr(name));
    }
  }
  EXPECT_THAT(message_of<ConfigError>([] {
                slurm_job(of({{"SLURM_JOB_ID", "1"}, {"SLURM_JOB_NODELIST", "n[1"}}));
              }),
              HasSubstr("SLURM_JOB_NODELIST"));
}

}  // namespace
}  // namespace trireme
