#include "slurm/process/child.h"

#include <array>
#include <csignal>

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

// Runs a child and returns its output.
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

// Some daemons ignore SIGCHLD, which their children inherit; the kernel then discards exit codes.
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
  // The grandchild holds the pipe, too, so end of file means that it has ended.
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

}  // namespace
}  // namespace trireme
