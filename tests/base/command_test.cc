#include "src/base/command.h"

#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

using std::chrono::seconds;
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

// The sleep that the shell starts keeps the output open and would outlast the test's TIMEOUT.
TEST(Command, LateOnesAreKilled) {
  const CommandResult result =
      run_command({"sh", "-c", "sleep 600 & echo $!; sleep 600"}, std::chrono::milliseconds(300));
  EXPECT_TRUE(result.late);
  EXPECT_THAT(result.complaint("sleep"), HasSubstr("no answer within 0.3 s"));
  const std::string sleeper = result.output.substr(0, result.output.find('\n'));
  ASSERT_FALSE(sleeper.empty());
  for (int i = 0; i < 1000 && !has_ended(sleeper); ++i) {
    // A SIGKILL takes effect with a delay.
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(has_ended(sleeper)) << sleeper;
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

}  // namespace
}  // namespace trireme
