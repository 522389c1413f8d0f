#include "slurm/process/proc.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>

#include <gtest/gtest.h>
#include <unistd.h>

#include "slurm/process/child.h"
#include "src/base/error.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

std::vector<pid_t> pids_of(const std::vector<OwnProcess>& processes) {
  std::vector<pid_t> pids;
  std::transform(processes.begin(), processes.end(), std::back_inserter(pids),
                 [](const OwnProcess& process) { return process.pid(); });
  return pids;
}

std::map<pid_t, std::int64_t> attempts_of(const std::string& launch) {
  std::map<pid_t, std::int64_t> found;
  for (const MarkedProcess& marked : marked_processes(launch)) {
    found[marked.process.pid()] = marked.attempt;
  }
  return found;
}

// Returns a waiting shell with arguments like those that mark mpirun's daemons over ssh.
std::vector<std::string> waiting_shell(const std::string& shell, const std::string& mark) {
  return {shell, "-c", "sleep 60; :", "sh", "-mca", kLaunchMark, mark};
}

const std::vector<std::pair<std::string, std::string>> kRank = {
    {"TRIREME_LAUNCH_ID", "0123-test"},
    {"TRIREME_NODE", "n1"},
    {"TRIREME_GENERATION", "2"},
    {"OMPI_MCA_trireme_launch", "0123-test.2"}};

// Starts a process of another user with the same arguments and variables: either that user's own,
// or this user's set-user-ID program.
Child start_as_nobody(const std::string& ids) {
  Child child({.argv = {"setpriv", ids, "--clear-groups", "sleep", "60"}, .environment = kRank});
  const auto sleeps = [&] {
    std::error_code gone;
    const std::string link = fmt::format("/proc/{}/exe", child.pid());
    // A program's name is seen a moment before its variables are.
    return std::filesystem::read_symlink(link, gone).filename() == "sleep" &&
           variable_of(child.pid(), "TRIREME_NODE");
  };
  for (int i = 0; i < 500 && !sleeps(); ++i) {
    ::usleep(10'000);
  }
  return child;
}

TEST(Proc, FindsTheProcessesOfALaunch) {
  const Child child({.argv = {"sleep", "60"}, .environment = kRank});
  EXPECT_EQ(pids_of(processes_of_launch("0123-test", "n1")), std::vector<pid_t>{child.pid()});
  EXPECT_EQ(pids_of(processes_of_launch("0123-test", "")), std::vector<pid_t>{child.pid()});
  EXPECT_TRUE(processes_of_launch("0123-test", "n2").empty());
  EXPECT_TRUE(processes_of_launch("0123", "n1").empty());
  EXPECT_EQ(variable_of(child.pid(), "TRIREME_GENERATION"), "2");
  EXPECT_FALSE(variable_of(child.pid(), "TRIREME_GEN"));
}

// In Slurm the mark is in the environment, and over ssh it is in the arguments of the daemon.
TEST(Proc, FindsWhatALauncherHasLeft) {
  const TempFolder folder;
  const std::string daemon = folder.path() / "orted";
  std::filesystem::copy_file("/bin/sh", daemon);
  const Child plain({.argv = waiting_shell(daemon, "ad-test.3")});
  const Child quoted({.argv = waiting_shell(daemon, "\"ad-test.4\"")});
  const Child quiet(
      {.argv = {"sleep", "60"}, .environment = {{"OMPI_MCA_trireme_launch", "ad-test.5"}}});
  const Child other(
      {.argv = {"sleep", "60"}, .environment = {{"OMPI_MCA_trireme_launch", "ad-test2.5"}}});
  EXPECT_EQ(attempts_of("ad-test"),
            (std::map<pid_t, std::int64_t>{{plain.pid(), 3}, {quoted.pid(), 4}, {quiet.pid(), 5}}));
}

// The mark is public, so it may be part of the command line of any program.
TEST(Proc, ACommandLineAloneProvesNothing) {
  const Child plain({.argv = waiting_shell("sh", "ad-test.0")});
  const Child line({.argv = {"sh", "-c", "sleep 60; : -mca trireme_launch 'ad-test.0' x"}});
  EXPECT_TRUE(attempts_of("ad-test").empty());
}

TEST(Proc, WhatAnotherUserHasStartedIsNoPartOfALaunch) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs to start a process as another user: run as root";
  }
  for (const char* ids : {"--reuid=65534", "--ruid=65534"}) {
    const Child stranger = start_as_nobody(ids);
    EXPECT_EQ(variable_of(stranger.pid(), "TRIREME_NODE"), "n1") << ids;
    EXPECT_TRUE(processes_of_launch("0123-test", "n1").empty()) << ids;
    EXPECT_TRUE(attempts_of("0123-test").empty()) << ids;
    EXPECT_FALSE(OwnProcess::open(stranger.pid())) << ids;
  }
}

TEST(Proc, ASignalReachesTheProcessThatWasOpenedOrNone) {
  Child child({.argv = {"sleep", "60"}});
  const auto process = OwnProcess::open(child.pid());
  ASSERT_TRUE(process && process->exists());
  process->kill();
  EXPECT_EQ(child.wait(10), 128 + SIGKILL);
  EXPECT_FALSE(process->exists());
  EXPECT_FALSE(OwnProcess::open(child.pid()));
}

TEST(Proc, KnowsAStoppedProcessAndADeadOne) {
  Child child({.argv = {"sleep", "60"}});
  child.signal(SIGSTOP);
  for (int i = 0; i < 500 && process_state(child.pid())->letter != 'T'; ++i) {
    ::usleep(10'000);
  }
  EXPECT_EQ(process_state(child.pid())->letter, 'T');
  child.signal(SIGKILL);
  // It is dead, although nobody has waited for it yet.
  for (int i = 0; i < 500 && process_state(child.pid()); ++i) {
    ::usleep(10'000);
  }
  EXPECT_FALSE(process_state(child.pid()));
}

}  // namespace
}  // namespace trireme
