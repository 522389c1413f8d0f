#include <fstream>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>

#include "src/app/launch/launch_command.h"
#include "src/base/file.h"
#include "tests/app/command_run.h"
#include "tests/support/environment_variables.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ReportCommand : public testing::Test {
 protected:
  void write(const std::string& text) const {
    std::ofstream(folder_.path() / "journal.jsonl") << text;
  }
  CommandRun report(std::vector<std::string> words = {}) const {
    words.insert(words.begin(), {"launch", "report", folder_.path().string()});
    AppContext context;
    return run_command_line([&](CommandLine& app, int&) { add_launch_command(app, context); },
                            words);
  }

  TempFolder folder_;
};

// The ranks are launched at 2 s and die at 52 s. The launch never says that it has ended.
const std::string kJournal =
    R"({"time":1000,"clock":0,"launch":"a","event":"begin"}
{"time":1002,"clock":2,"launch":"a","event":"launch","attempt":1,"nodes":["n1"],"ranks":4}
{"time":1052,"clock":52,"launch":"a","event":"attempt_end","attempt":1,)"
    R"("cause":"hang","what":"rank 3\u001b[2J","detected":52}
{"time":1060,"clock":60,"launch":"a","event":"launch","attempt":2,"nodes":["n1"],"ranks":4}
)";

TEST_F(ReportCommand, AccountsForTheTimeOfTheJournal) {
  write(kJournal);
  const CommandRun text = report();
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("1 launch, 2 attempts, 2 failures"), HasSubstr("rank 3\\x1b[2J\n")));
  const auto document = nlohmann::json::parse(report({"--json"}).out);
  EXPECT_EQ(document["schema"], "trireme-launch-report-2");
  EXPECT_EQ(document["wall_seconds"], 60.0);
  EXPECT_EQ(document["failures"], 2);
  ASSERT_EQ(document["attempts"].size(), 2U);
  EXPECT_EQ(document["attempts"][0]["seconds"], 50.0);
  EXPECT_EQ(document["attempts"][0]["cause"], "hang");
  EXPECT_EQ(document["attempts"][1]["cause"], "");  // it was killed, and the cause is unknown
}

TEST_F(ReportCommand, TheLastAttemptRunsWhileTheLaunchHoldsItsLock) {
  write(kJournal);
  const UniqueHandle<FileDescriptorTraits> lock(
      ::open((folder_.path() / ".launch.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX | LOCK_NB), 0);
  const auto document = nlohmann::json::parse(report({"--json"}).out);
  EXPECT_EQ(document["attempts"][0]["cause"], "hang");
  EXPECT_EQ(document["attempts"][1]["cause"], "running");
  EXPECT_EQ(document["failures"], 1);
}

TEST_F(ReportCommand, DamagedLinesAreCountedAndLeftOut) {
  write(kJournal + "torn {\n{\"event\":\"end\"}\n");
  const CommandRun run = report();
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.err,
              HasSubstr("journal.jsonl: ignoring 2 damaged lines (the first is line 5)\n"));
  write("torn {\n");
  const CommandRun nothing = report();
  EXPECT_EQ(nothing.code, 65);
  EXPECT_THAT(nothing.err, AllOf(HasSubstr("ignoring 1 damaged line (line 1)\n"),
                                 HasSubstr("holds no event of a launch")));
}

TEST_F(ReportCommand, ARunWithoutALaunchHasNoJournal) {
  const CommandRun run = report();
  EXPECT_EQ(run.code, 66);
  EXPECT_THAT(run.err, AllOf(HasSubstr("was not started by 'trireme launch'"),
                             HasSubstr("'trireme status " + folder_.path().string() + "'")));
}

CommandRun launch(std::vector<std::string> words) {
  words.insert(words.begin(), "launch");
  AppContext context;
  return run_command_line([&](CommandLine& app, int&) { add_launch_command(app, context); }, words);
}

TEST(LaunchCommand, OptionsOutOfRangeAreRefusedBeforeAnythingStarts) {
  const std::vector<std::vector<std::string>> wrong = {
      {"--local", "0"},          {"--local", "1025"},
      {"--ranks-per-node", "0"}, {"--ranks-per-node", "4097"},
      {"--cpus-per-rank", "0"},  {"--cpus-per-rank", "4097"},
      {"--spares", "-1"},        {"--min-nodes", "0"},
      {"--launcher", "mpiexec"}, {"--local", "two"}};
  for (const auto& option : wrong) {
    std::vector<std::string> words = option;
    words.insert(words.end(), {"--", "train", "/nonexistent.yaml"});
    const CommandRun run = launch(words);
    EXPECT_EQ(run.code, 2) << option.front();
    EXPECT_THAT(run.err, HasSubstr(option.front() + ": '" + option.back() + "'"));
  }
  const CommandRun none = launch({"--local", "1024", "--spares", "0"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("no run is given"));
  EXPECT_EQ(launch({"--", "train", "/nonexistent.yaml"}).code, 66);
}

// These are started by a launch, which passes the secret on standard input.
TEST(LaunchCommand, ItsProcessesAreNotStartedByHand) {
  EnvironmentVariables variables;
  variables.set("TRIREME_LAUNCH_NODES", std::nullopt);
  const std::vector<std::string> caller = {"--node",    "n1",     "--addresses",
                                           "127.0.0.1", "--port", "1"};
  std::vector<std::string> agent = {"agent", "--launch", "00ff"};
  agent.insert(agent.end(), caller.begin(), caller.end());
  std::vector<std::string> deputy = {"deputy", "--job", "7"};
  deputy.insert(deputy.end(), caller.begin(), caller.end());
  const int input = ::dup(STDIN_FILENO);
  for (const std::vector<std::string>& words : {agent, deputy}) {
    const int empty = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(::dup2(empty, STDIN_FILENO), STDIN_FILENO);
    ::close(empty);
    const CommandRun run = launch(words);
    EXPECT_EQ(run.code, 2) << words.front();
    EXPECT_THAT(run.err, HasSubstr("holds no secret of a launch")) << words.front();
  }
  ::dup2(input, STDIN_FILENO);
  ::close(input);
  const CommandRun rank = launch({"rank", "--", "train", "run.yaml"});
  EXPECT_EQ(rank.code, 2);
  EXPECT_THAT(rank.err, HasSubstr("'trireme launch rank' cannot be started by hand"));
  agent.erase(agent.begin() + 1, agent.begin() + 3);
  EXPECT_THAT(launch(agent).err, HasSubstr("--launch is required"));
}

}  // namespace
}  // namespace trireme
