#include "src/base/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/stopwatch.h"

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
  EXPECT_THAT(result.complaint("x"), HasSubstr("no such program"));
}

TEST(Command, DeathBySignal) {
  EXPECT_EQ(run_command({"sh", "-c", "kill -9 $$"}, seconds(20)).code, 137);
}

// With what it has started: the sleep holds the output open, too.
TEST(Command, LateOnesAreKilled) {
  const Stopwatch watch;
  const CommandResult result = run_command({"sh", "-c", "echo begun; sleep 600 & sleep 600"},
                                           std::chrono::milliseconds(300));
  EXPECT_TRUE(result.late);
  EXPECT_EQ(result.output, "begun\n");
  EXPECT_THAT(result.complaint("sleep"), HasSubstr("no answer in 0.3 s"));
  EXPECT_LT(watch.seconds(), 300);
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
