#include "slurm/process/child.h"

#include <array>
#include <csignal>
#include <map>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "slurm/process/proc.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

// The child's output.
std::string output_of(ChildPlan plan, std::optional<int>& code) {
  const TempFolder folder;
  const auto path = folder.path() / "out";
  File file = File::create_new(path);
  plan.output = file.fd();
  Child child(plan);
  code = child.wait(10);
  return read_file(path);
}

TEST(Child, GetsItsInputAndEnvironment) {
  std::optional<int> code;
  const std::string text = output_of({.argv = {"sh", "-c", "cat; echo $WIND; exit 3"},
                                      .environment = {{"WIND", "north"}, {"HOME", ""}},
                                      .input = "hello\n"},
                                     code);
  EXPECT_EQ(text, "hello\nnorth\n");
  EXPECT_EQ(code, 3);
}

TEST(Child, AnAbsentProgramIsAnError) {
  EXPECT_THROW(Child({.argv = {"no-such-program-anywhere"}}), NotFound);
}

// Some daemons ignore SIGCHLD, and what they start inherits that: the kernel then keeps no code.
TEST(Child, ItsEndIsSeenWhereSigchldIsIgnored) {
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  Child child({.argv = {"true"}});
  EXPECT_EQ(child.wait(10), 255);
  ::signal(SIGCHLD, before);
}

TEST(Child, ASignalIsPartOfItsCode) {
  Child child({.argv = {"sleep", "60"}});
  EXPECT_FALSE(child.poll());
  child.signal(SIGTERM);
  EXPECT_EQ(child.wait(10), 128 + SIGTERM);
}

TEST(Child, ItsGroupEndsWithIt) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  {
    const Child child({.argv = {"sh", "-c", "sleep 60 & echo started; wait"}, .output = ends[1]});
    ::close(ends[1]);
    char byte = 0;
    ASSERT_EQ(::read(ends[0], &byte, 1), 1);
  }
  // The grandchild held the pipe, too: its end is the end of the file.
  std::array<char, 64> rest{};
  while (::read(ends[0], rest.data(), rest.size()) > 0) {
  }
  ::close(ends[0]);
}

TEST(Child, DiesWithItsParent) {
  const TempFolder folder;
  const auto path = folder.path() / "pid";
  const pid_t middle = ::fork();
  if (middle == 0) {
    const Child child({.argv = {"sleep", "60"}});
    File file = File::create_new(path);
    const std::string text = std::to_string(child.pid());
    file.write(text.data(), static_cast<std::int64_t>(text.size()));
    ::raise(SIGKILL);
  }
  ::waitpid(middle, nullptr, 0);
  const auto pid = static_cast<pid_t>(std::stol(read_file(path)));
  for (int i = 0; i < 500 && process_state(pid); ++i) {
    ::usleep(10'000);
  }
  EXPECT_FALSE(process_state(pid));
}

TEST(Proc, FindsTheProcessesOfALaunch) {
  const ChildPlan plan{
      .argv = {"sleep", "60"},
      .environment = {
          {"TRIREME_LAUNCH_ID", "0123-test"}, {"TRIREME_NODE", "n1"}, {"TRIREME_GENERATION", "2"}}};
  const Child child(plan);
  EXPECT_EQ(processes_of_launch("0123-test", "n1"), std::vector<pid_t>{child.pid()});
  EXPECT_EQ(processes_of_launch("0123-test", ""), std::vector<pid_t>{child.pid()});
  EXPECT_TRUE(processes_of_launch("0123-test", "n2").empty());
  EXPECT_TRUE(processes_of_launch("0123", "n1").empty());
  EXPECT_EQ(variable_of(child.pid(), "TRIREME_GENERATION"), "2");
  EXPECT_FALSE(variable_of(child.pid(), "TRIREME_GEN"));
}

// As mpirun's daemons carry the mark: over ssh in their arguments, in Slurm in the environment.
TEST(Proc, FindsWhatALauncherHasLeft) {
  const Child plain({.argv = {"sh", "-c", "sleep 60; :", "-mca", kLaunchMark, "\"ad-test.3\""}});
  const Child line({.argv = {"sh", "-c", "sleep 60; : -mca trireme_launch 'ad-test.4' x"}});
  const Child quiet(
      {.argv = {"sleep", "60"}, .environment = {{"OMPI_MCA_trireme_launch", "ad-test.5"}}});
  const Child other(
      {.argv = {"sleep", "60"}, .environment = {{"OMPI_MCA_trireme_launch", "ad-test2.5"}}});
  std::map<pid_t, std::int64_t> found;
  for (const MarkedProcess& process : marked_processes("ad-test")) {
    found[process.pid] = process.generation;
  }
  EXPECT_EQ(found.at(plain.pid()), 3);
  EXPECT_EQ(found.at(line.pid()), 4);
  EXPECT_EQ(found.at(quiet.pid()), 5);
  EXPECT_FALSE(found.contains(other.pid()));
}

TEST(Proc, KnowsAStoppedProcessAndADeadOne) {
  Child child({.argv = {"sleep", "60"}});
  child.signal(SIGSTOP);
  for (int i = 0; i < 500 && process_state(child.pid())->letter != 'T'; ++i) {
    ::usleep(10'000);
  }
  EXPECT_EQ(process_state(child.pid())->letter, 'T');
  child.signal(SIGKILL);
  // Dead, though nobody has waited for it yet.
  for (int i = 0; i < 500 && process_state(child.pid()); ++i) {
    ::usleep(10'000);
  }
  EXPECT_FALSE(process_state(child.pid()));
}

}  // namespace
}  // namespace trireme
