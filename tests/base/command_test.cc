#include "src/base/command.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "src/base/interruption.h"

namespace trireme {
namespace {

using std::chrono::seconds;
using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(Command, OutputErrorsAndCode) {
  const CommandResult result =
      run_command({"sh", "-c", "echo out; echo err >&2; exit 3"}, seconds(20));
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(result.output, "out\n");
  EXPECT_EQ(result.errors, "err\n");
  EXPECT_FALSE(result.good());
  EXPECT_EQ(result.complaint("sh"), "sh: exit code 3: err");
}

TEST(Command, ArgumentsAreNoShell) {
  const std::string hostile = "$(touch x); `y` 'z' \"\n*";
  EXPECT_EQ(run_command({"printf", "%s", hostile}, seconds(20)).output, hostile);
}

TEST(Command, NoSuchProgram) {
  const CommandResult result = run_command({"trireme-no-such-program"}, seconds(20));
  EXPECT_EQ(result.code, 127);
  EXPECT_THAT(result.complaint("x"), HasSubstr("the program was not found"));
}

TEST(Command, DeathBySignal) {
  EXPECT_EQ(run_command({"sh", "-c", "kill -9 $$"}, seconds(20)).code, 137);
}

// Returns whether a process is gone, or is a zombie that its adopting parent has not yet reaped.
bool has_ended(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  const std::string stat{std::istreambuf_iterator<char>(file), {}};
  const std::size_t name_end = stat.rfind(')');
  return name_end == std::string::npos || stat.at(name_end + 2) == 'Z' ||
         stat.at(name_end + 2) == 'X';
}

// A SIGKILL takes effect with a delay.
bool ends_soon(const std::string& pid) {
  for (int i = 0; i < 1000 && !has_ended(pid); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return has_ended(pid);
}

// The sleep that the shell starts keeps the output open and would outlast the test's TIMEOUT.
TEST(Command, LateOnesAreKilled) {
  const CommandResult result =
      run_command({"sh", "-c", "sleep 600 & echo $!; sleep 600"}, std::chrono::milliseconds(300));
  EXPECT_TRUE(result.late);
  EXPECT_THAT(result.complaint("sleep"), HasSubstr("no answer within 0.3 s"));
  const std::string sleeper = result.output.substr(0, result.output.find('\n'));
  ASSERT_FALSE(sleeper.empty());
  EXPECT_TRUE(ends_soon(sleeper)) << sleeper;
}

TEST(Command, ClosedOutputIsNoEnd) {
  EXPECT_TRUE(
      run_command({"sh", "-c", "exec >&- 2>&-; sleep 600"}, std::chrono::milliseconds(300)).late);
}

TEST(Command, OutputIsBounded) {
  const CommandResult result = run_command({"sh", "-c", "yes | head -c 3000000"}, seconds(60));
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.output.size(), kMostCommandOutput);
}

// The sleep plays a program that a launcher has started in another process group.
constexpr const char* kLauncher =
    "setsid sleep 600 & elsewhere=$!; echo $elsewhere;"
    "trap 'kill -9 $elsewhere; echo ended; exit 9' TERM; while :; do sleep 0.01; done";

TEST(Command, ALauncherGetsTimeToEndWhatItStarted) {
  const CommandResult result =
      run_command({"sh", "-c", kLauncher}, std::chrono::milliseconds(300), {.grace = seconds(20)});
  EXPECT_TRUE(result.late);
  EXPECT_EQ(result.code, 9);
  EXPECT_THAT(result.output, HasSubstr("ended"));
  EXPECT_TRUE(ends_soon(result.output.substr(0, result.output.find('\n'))));
}

// It writes more at once than is read between two looks at whether it has ended.
TEST(Command, TheLastLinesOfALauncherAreKept) {
  const CommandResult result = run_command({"sh", "-c",
                                            "lines=$(yes | head -n 15000);"
                                            "trap 'echo \"$lines\"; echo last words >&2; kill -9 "
                                            "$$' TERM; while :; do sleep 0.01; done"},
                                           std::chrono::milliseconds(300), {.grace = seconds(20)});
  EXPECT_TRUE(result.late);
  EXPECT_EQ(result.output.size(), 30000U);
  EXPECT_THAT(result.errors, EndsWith("last words\n"));
}

TEST(Command, ALauncherGetsAllSignals) {
  const CommandResult result = run_command(
      {"sh", "-c", "trap 'n=7' USR1; trap 'exit $n' TERM; while :; do sleep 0.01; done"},
      std::chrono::milliseconds(300), {.grace = seconds(20), .signals = {SIGUSR1, SIGTERM}});
  EXPECT_TRUE(result.late);
  EXPECT_EQ(result.code, 7);
}

TEST(Command, ALauncherThatIgnoresTheSignalIsKilled) {
  const CommandResult result =
      run_command({"sh", "-c", "trap '' TERM; while :; do sleep 0.01; done"},
                  std::chrono::milliseconds(100), {.grace = std::chrono::milliseconds(300)});
  EXPECT_TRUE(result.late);
  EXPECT_EQ(result.code, 137);
}

std::string outcome(std::vector<std::string> argv, std::chrono::duration<double> grace) {
  try {
    return run_command(std::move(argv), seconds(20), {.grace = grace}).good() ? "good" : "bad";
  } catch (const Interrupted&) {
    return "interrupted";
  }
}

// The signal ends this child process of the test, also where a shell started the test to ignore it.
void interrupt_a_launcher() {
  std::signal(SIGINT, SIG_DFL);
  std::string seen;
  run_interruptibly(
      [&] {
        seen += outcome({"true"}, seconds(20));
        std::raise(SIGINT);
        // A command without grace is short, and its result must not be lost.
        seen += " " + outcome({"true"}, {}) + " " + outcome({"true"}, seconds(20));
        throw_if_interrupted();
      },
      [&] { std::fprintf(stderr, "seen: %s\n", seen.c_str()); });
}

TEST(CommandDeathTest, AnInterruptionEndsTheProcessByItsSignal) {
  EXPECT_EXIT(interrupt_a_launcher(), ::testing::KilledBySignal(SIGINT),
              "seen: good good interrupted");
}

void interrupt_from_outside() {
  ::dup2(STDERR_FILENO, 9);
  run_interruptibly(
      [] {
        // The launcher itself interrupts this process once it is ready to be ended.
        (void)run_command({"sh", "-c",
                           "trap 'echo launcher ended >&9; exit' TERM; kill -TERM $PPID;"
                           "while :; do sleep 0.01; done"},
                          seconds(60), {.grace = seconds(20)});
      },
      [] {});
}

TEST(CommandDeathTest, AnInterruptionEndsTheRunningLauncher) {
  EXPECT_EXIT(interrupt_from_outside(), ::testing::KilledBySignal(SIGTERM), "launcher ended");
}

TEST(Interruption, SignalsThatAreIgnoredStayIgnored) {
  const auto before = std::signal(SIGHUP, SIG_IGN);
  run_interruptibly(
      [] {
        std::raise(SIGHUP);
        EXPECT_EQ(interruption(), 0);
      },
      [] {});
  std::signal(SIGHUP, before);
}

}  // namespace
}  // namespace trireme
