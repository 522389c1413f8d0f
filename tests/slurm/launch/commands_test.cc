#include "slurm/launch/commands.h"

#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>

#include "slurm/launch/deputy.h"
#include "slurm/launch/run_files.h"
#include "slurm/process/child.h"
#include "src/base/command.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/temp_folder.h"
#include "tests/support/unprivileged.h"

namespace trireme {
namespace {

LaunchSetting setting(Reach reach) {
  LaunchSetting s;
  s.program = "/opt/my trireme/bin/trireme";
  s.launch = "00ff";
  s.reach = reach;
  s.ranks_per_node = 2;
  s.run = {"train", "run.yaml", "run.dir=a b"};
  s.handed_on = {"UCX_TLS"};
  return s;
}

const std::vector<NodeSpec> kNodes = {{.name = "n1", .group = "r1"}, {.name = "n7", .group = ""}};

bool has(const Command& command, const std::string& word) {
  return std::find(command.argv.begin(), command.argv.end(), word) != command.argv.end();
}

std::string variable(const Command& command, const std::string& name) {
  for (const auto& [key, value] : command.environment) {
    if (key == name) {
      return value;
    }
  }
  return "";
}

TEST(Commands, MpirunGetsHostsAndVariables) {
  const Command c = ranks_command(setting(Reach::ssh), 3, kNodes);
  EXPECT_EQ(c.argv.front(), "mpirun");
  EXPECT_TRUE(has(c, "n1:2,n7:2"));
  EXPECT_TRUE(has(c, "ppr:2:node"));
  EXPECT_TRUE(has(c, "TRIREME_GENERATION"));
  EXPECT_TRUE(has(c, "UCX_TLS"));
  EXPECT_EQ(variable(c, "TRIREME_GENERATION"), "3");
  EXPECT_EQ(variable(c, "TRIREME_LAUNCH_NODES"), "n1,n7");
  EXPECT_EQ(variable(c, "SLURM_OVERLAP"), "");
  EXPECT_EQ(variable(c, "OMPI_MCA_oob_tcp_keepalive_time"), "5");
  EXPECT_EQ(c.argv.back(), "run.dir=a b");
}

TEST(Commands, InSlurmTheDaemonsOverlapADeadStep) {
  EXPECT_EQ(variable(ranks_command(setting(Reach::slurm), 1, kNodes), "SLURM_OVERLAP"), "1");
  LaunchSetting s = setting(Reach::slurm);
  s.starter = Starter::srun;
  const Command c = ranks_command(s, 1, kNodes);
  EXPECT_EQ(c.argv.front(), "srun");
  EXPECT_TRUE(has(c, "--kill-on-bad-exit=1"));
  EXPECT_TRUE(has(c, "--nodelist=n1,n7"));
  EXPECT_FALSE(has(c, "--no-kill"));
}

// With `sbatch --export=NONE`, as some sites require, Slurm by default passes no variables to
// steps.
TEST(Commands, InSlurmRanksGetTheVariablesWhateverTheJobWasSubmittedWith) {
  LaunchSetting s = setting(Reach::slurm);
  EXPECT_EQ(variable(ranks_command(s, 1, kNodes), "SLURM_EXPORT_ENV"), "ALL");
  EXPECT_TRUE(has(on_node(s, "n7", {"launch", "agent"}), "--export=ALL"));
  s.starter = Starter::srun;
  EXPECT_TRUE(has(ranks_command(s, 1, kNodes), "--export=ALL"));
}

TEST(Commands, RanksAreBoundWhereThatIsAskedFor) {
  LaunchSetting s = setting(Reach::slurm);
  s.cpus_per_rank = 8;
  EXPECT_TRUE(has(ranks_command(s, 1, kNodes), "ppr:2:node:PE=8"));
  s.starter = Starter::srun;
  EXPECT_TRUE(has(ranks_command(s, 1, kNodes), "--cpus-per-task=8"));
  s = setting(Reach::local);
  s.cpus_per_rank = 1;
  EXPECT_TRUE(has(ranks_command(s, 1, kNodes), "ppr:4:node:PE=1"));
}

TEST(Commands, AgentsInSlurmOutliveOtherNodes) {
  const Command c = on_node(setting(Reach::slurm), "n7", {"launch", "agent"});
  EXPECT_TRUE(has(c, "--no-kill"));
  EXPECT_TRUE(has(c, "--overlap"));
  EXPECT_TRUE(has(c, "--nodelist=n7"));
  EXPECT_TRUE(has(c, "--cpu-bind=none"));  // the health check measures the whole node
}

// The remote shell must pass on the words unchanged, whatever they contain.
TEST(Commands, WhatGoesThroughAShellIsQuoted) {
  const std::string hostile = "a b'c$(touch x)`y`\"\\;#\n";
  EXPECT_EQ(
      run_command({"sh", "-c", "printf %s " + posix_word(hostile)}, std::chrono::seconds(5)).output,
      hostile);
  const Command c = on_node(setting(Reach::ssh), "n1", {"launch", "agent", "--health", hostile});
  EXPECT_EQ(c.argv[c.argv.size() - 2], "n1");
  EXPECT_EQ(c.argv.back(),
            "'/opt/my trireme/bin/trireme' 'launch' 'agent' '--health' " + posix_word(hostile));
}

Environment of_rank(const std::string& rank) {
  return {{"TRIREME_LAUNCH_ID", "00ff"},
          {"TRIREME_LAUNCH_NODES", "n1,n7"},
          {"TRIREME_LAUNCH_RANKS_PER_NODE", "2"},
          {"OMPI_COMM_WORLD_RANK", rank}};
}

TEST(RankEnvironment, IsThatOfTheRanksNode) {
  EXPECT_EQ(rank_environment(of_rank("1")).node, "n1");
  EXPECT_EQ(rank_environment(of_rank("2")).node, "n7");
  EXPECT_THROW((void)rank_environment(of_rank("4")), ConfigError);
  EXPECT_THROW((void)rank_environment(of_rank("x")), ConfigError);
  EXPECT_THROW((void)rank_environment({}), ConfigError);
}

TEST(RankEnvironment, SlurmKnowsBetterWhereItsTasksAre) {
  Environment e = of_rank("0");
  e.back().first = "PMIX_RANK";
  e.emplace_back("SLURM_STEP_ID", "3");
  e.emplace_back("SLURMD_NODENAME", "n7");
  EXPECT_EQ(rank_environment(e).node, "n7");
  e.back().second = "elsewhere";
  EXPECT_THROW((void)rank_environment(e), ConfigError);
}

TEST(Deputy, RequeuesWhatNobodyHasEnded) {
  const auto state = [](const char* word) {
    return parse_job_state(fmt::format("JobId=7 JobName=x\n   JobState={} Reason=None\n", word));
  };
  for (const char* word : {"RUNNING", "COMPLETING", "FAILED", "NODE_FAIL"}) {
    EXPECT_TRUE(should_requeue(state(word))) << word;
  }
  for (const char* word : {"CANCELLED", "CANCELLED+", "COMPLETED", "TIMEOUT", "PENDING"}) {
    EXPECT_FALSE(should_requeue(state(word))) << word;
  }
  EXPECT_EQ(parse_job_state("slurm_load_jobs error: Invalid job id"), JobState::unknown);
  EXPECT_EQ(parse_job_state("JobState="), JobState::running);
}

// The texts are those of Slurm 22.05, including a job of an array.
TEST(Deputy, KnowsWhatMayBeDoneWithAJob) {
  const JobRecord lost = parse_job(
      "JobId=40 ArrayJobId=40 ArrayTaskId=2 JobName=x\n   JobState=RUNNING Reason=None\n   "
      "Requeue=1 Restarts=7 BatchFlag=1 Reboot=0 ExitCode=0:0\n");
  EXPECT_EQ(lost.state, JobState::running);
  EXPECT_TRUE(lost.may_be_requeued);
  EXPECT_FALSE(lost.has_failed);
  EXPECT_EQ(lost.restarts, 7);
  const JobRecord failed = parse_job("JobId=7\n   JobState=FAILED\n   Requeue=0 Restarts=5\n");
  EXPECT_TRUE(failed.has_failed);
  EXPECT_FALSE(failed.may_be_requeued);
  EXPECT_GE(failed.restarts, kMostRestartsOfFailures);
  for (const char* text : {"", "Restarts=x Requeue=", "NoRequeue=0 JobState"}) {
    EXPECT_EQ(parse_job(text).state, JobState::unknown);
    EXPECT_TRUE(parse_job(text).may_be_requeued);
    EXPECT_EQ(parse_job(text).restarts, 0);
  }
}

TEST(RunFiles, ARunHasOneLaunchAtATime) {
  const TempFolder folder;
  RunFiles first(folder.path(), folder.path() / "checkpoints");
  first.take();
  RunFiles second(folder.path(), folder.path() / "checkpoints");
  EXPECT_THROW(second.take(), PolicyError);
}

TEST(RunFiles, DoneMustBeOfThisAttempt) {
  const TempFolder folder;
  RunFiles files(folder.path(), folder.path() / "checkpoints");
  files.begin_attempt();
  EXPECT_FALSE(files.done(0));
  write_file_durably(folder.path() / "DONE", "{\"step\":5}\n");
  EXPECT_TRUE(files.done(137));
  files.begin_attempt();
  EXPECT_FALSE(files.done(137));  // DONE is that of an earlier, shorter run
  EXPECT_TRUE(files.done(0));
}

TEST(RunFiles, KnowsTheLastStepThatAnAttemptHasLogged) {
  const TempFolder folder;
  RunFiles files(folder.path(), folder.path() / "checkpoints");
  EXPECT_EQ(files.logged_step(), -1);
  const auto log = [&](const std::string& lines) {
    std::ofstream(folder.path() / "metrics.jsonl", std::ios::app) << lines;
  };
  log("{\"step\": 1}\n{\"step\": 2}\n");
  EXPECT_EQ(files.logged_step(), 2);
  files.begin_attempt();
  EXPECT_EQ(files.logged_step(), -1) << "step 2 is that of an earlier attempt";
  log("{\"step\": 1}\n{\"st");
  EXPECT_EQ(files.logged_step(), 1);
}

TEST(RunFiles, KnowsTheNewestStepAndTheReason) {
  const TempFolder folder;
  RunFiles files(folder.path(), folder.path() / "checkpoints");
  const auto save = [&](const std::string& name, const std::string& manifest) {
    make_directories(folder.path() / "checkpoints" / name);
    write_file_durably(folder.path() / "checkpoints" / name / "manifest.json", manifest);
  };
  const auto of = [](int generation) {
    return fmt::format("{{\"format\": \"f\", \"generation\": {}, \"step\": 1}}", generation);
  };
  EXPECT_EQ(files.durable_step(), SavedStep{});
  for (const char* name : {"step-00000010", "step-00000020", ".tmp-30-1", "step-x", "step-4x"}) {
    save(name, of(2));
  }
  EXPECT_EQ(files.durable_step(), (SavedStep{2, 20}));
  for (const char* text : {"", "{\"generation\": ", "{\"generation\": x}"}) {
    save("step-00000030", text);
    EXPECT_EQ(files.durable_step(), (SavedStep{2, 20})) << text;
  }
  make_directories(folder.path() / "checkpoints" / "step-00000040");
  EXPECT_EQ(files.durable_step(), (SavedStep{2, 20}));
  // After a rewind, the newer generation counts.
  save("step-00000010", of(3));
  EXPECT_EQ(files.durable_step(), (SavedStep{3, 10}));
  EXPECT_FALSE(files.reason());
  files.end({93, "no progress"}, "host");
  ASSERT_TRUE(files.reason());
  EXPECT_EQ(files.reason()->code, 93);
  files.begin_attempt();
  EXPECT_FALSE(files.reason());
}

// Simulates a disk that has become read-only.
TEST(RunFiles, AReasonThatCantBeRemovedIsNotThatOfTheNextAttempt) {
  const TempFolder folder;
  RunFiles files(folder.path(), folder.path() / "checkpoints");
  files.end({75, "saved"}, "host");
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0555));
  {
    const Unprivileged nobody;
    if (!nobody.bound()) {
      GTEST_SKIP() << "needs to become another user: run as root with CAP_SETUID";
    }
    files.begin_attempt();
  }
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "exit_reason.json"));
  EXPECT_FALSE(files.reason());
  files.end({74, "another"}, "host");
  ASSERT_TRUE(files.reason());
  EXPECT_EQ(files.reason()->code, 74);
}

}  // namespace
}  // namespace trireme
