// Tests the deputy in a child process. `scontrol` and `scancel` are scripts that record how they
// were called.
#include "slurm/launch/deputy.h"

#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "slurm/wire/gate.h"
#include "slurm/wire/secret.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/slurm/launch/waiting.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

TEST(JobStates, DecideWhetherTheJobIsStartedAgain) {
  struct Case {
    const char* word;
    JobState state;
    bool requeue;
    bool failed;
  };
  // The words are those of scontrol(1).
  const std::vector<Case> cases = {{"RUNNING", JobState::running, true, false},
                                   {"COMPLETING", JobState::running, true, true},
                                   {"FAILED", JobState::running, true, true},
                                   {"OUT_OF_MEMORY", JobState::running, true, true},
                                   {"NODE_FAIL", JobState::running, true, false},
                                   {"SUSPENDED", JobState::running, true, false},
                                   {"CANCELLED", JobState::cancelled, false, false},
                                   {"CANCELLED+", JobState::cancelled, false, false},
                                   {"COMPLETED", JobState::cancelled, false, false},
                                   {"TIMEOUT", JobState::cancelled, false, false},
                                   {"DEADLINE", JobState::cancelled, false, false},
                                   {"PENDING", JobState::ended, false, false},
                                   {"REQUEUED", JobState::ended, false, false},
                                   {"PREEMPTED", JobState::ended, false, false},
                                   {"SPECIAL_EXIT", JobState::ended, false, false}};
  for (const Case& each : cases) {
    for (const char* form : {"JobId=7\n   JobState={} Reason=None\n", "JobState={}"}) {
      const JobRecord job = parse_job(fmt::format(fmt::runtime(form), each.word));
      EXPECT_EQ(job.state, each.state) << each.word;
      EXPECT_EQ(should_requeue(job.state), each.requeue) << each.word;
      EXPECT_EQ(job.has_failed, each.failed) << each.word;
    }
  }
  EXPECT_TRUE(should_requeue(parse_job_state("XJobState=COMPLETED")));
}

class DeputyProcess : public testing::Test {
 protected:
  DeputyProcess() {
    for (const char* name : {"scontrol", "scancel"}) {
      const fs::path path = folder_.path() / name;
      std::ofstream(path) << "#!/bin/sh\ncd " + folder_.path().string() + "\necho \"" + name +
                                 " $*\" >> calls\n[ \"$1\" != show ] || cat job\n";
      fs::permissions(path, fs::perms::owner_all);
    }
  }

  // Starts the deputy of job 42 on n2.
  pid_t start(const std::string& secret) const {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::setenv("PATH", (folder_.path().string() + ":/usr/bin:/bin").c_str(), 1);
      ::_exit(run_deputy({.job = "42",
                          .node = "n2",
                          .addresses = {"127.0.0.1"},
                          .port = supervisor_.port(),
                          .secret = secret}));
    }
    return pid;
  }
  Gate::Caller caller() {
    std::vector<Gate::Caller> callers;
    wait_until([&] {
      callers = supervisor_.look();
      return !callers.empty();
    });
    callers[0].connection.send(callers[0].welcome);
    return std::move(callers[0]);
  }
  static int code_of(pid_t pid) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  // Returns the commands that a deputy runs for this job after it has lost the supervisor.
  std::string after_loss(const std::string& job) {
    fs::remove(folder_.path() / "calls");
    std::ofstream(folder_.path() / "job") << job;
    const pid_t pid = start(secret_);
    {
      const Gate::Caller deputy = caller();
      EXPECT_EQ(deputy.hello.role, "deputy");
      EXPECT_EQ(deputy.hello.node, "n2");
    }
    EXPECT_EQ(code_of(pid), 0) << job;
    return read_file(folder_.path() / "calls");
  }

  TempFolder folder_;
  const std::string secret_ = fresh_secret();
  Gate supervisor_{"127.0.0.1", {}, secret_};
};

TEST_F(DeputyProcess, EndsWithTheSupervisorThatSaysGoodbye) {
  const pid_t pid = start(secret_);
  Gate::Caller deputy = caller();
  deputy.connection.send(to_json(Order{}));
  deputy.connection.send(to_json(Order{.kind = Order::Kind::bye}));
  EXPECT_EQ(code_of(pid), 0);
  EXPECT_FALSE(fs::exists(folder_.path() / "calls"));
}

TEST_F(DeputyProcess, RequeuesCancelsOrLeavesTheJobOfALostSupervisor) {
  const std::string shown = "scontrol show job 42\n";
  const std::string requeued = shown + "scontrol requeue 42\n";
  const std::string cancelled = shown + "scancel 42\n";
  const std::vector<std::pair<const char*, std::string>> cases = {
      {"JobState=RUNNING Requeue=1 Restarts=0\n", requeued},
      {"JobState=RUNNING Requeue=1 Restarts=100\n", requeued},
      {"", requeued},
      {"JobState=RUNNING Requeue=0 Restarts=0\n", cancelled},
      {"JobState=FAILED Requeue=1 Restarts=4\n", requeued},
      {"JobState=FAILED Requeue=1 Restarts=5\n", shown},
      {"JobState=COMPLETING Requeue=0 Restarts=5\n", shown},
      {"JobState=CANCELLED Requeue=1 Restarts=0\n", shown},
      {"JobState=PENDING Requeue=1 Restarts=1\n", shown}};
  for (const auto& [job, calls] : cases) {
    EXPECT_EQ(after_loss(job), calls) << job;
  }
}

TEST_F(DeputyProcess, AStrangerDoesNothing) {
  const pid_t pid = start(fresh_secret());
  wait_until([&] {
    EXPECT_TRUE(supervisor_.look().empty());
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT);
    return info.si_pid == pid;
  });
  EXPECT_EQ(code_of(pid), static_cast<int>(ExitCode::refused));
  EXPECT_FALSE(fs::exists(folder_.path() / "calls"));
}

}  // namespace
}  // namespace trireme
