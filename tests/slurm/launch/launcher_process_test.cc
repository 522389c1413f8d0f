#include "slurm/launch/launcher_process.h"

#include <csignal>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/error.h"
#include "tests/slurm/launch/waiting.h"
#include "tests/support/environment_variables.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

Command shell(const std::string& script) { return {.argv = {"sh", "-c", script}}; }

LauncherProcess::End end_of(LauncherProcess& process) {
  std::optional<LauncherProcess::End> end;
  wait_until([&] { return (end = process.ended()).has_value(); });
  return *end;
}

class LauncherProcessTest : public testing::Test {
 protected:
  LauncherProcessTest() { EXPECT_EQ(::mkfifo(pipe_.c_str(), 0600), 0); }

  // Returns the number that the process writes to the pipe, once it does.
  pid_t told_pid() const {
    pid_t pid = 0;
    std::ifstream(pipe_) >> pid;
    return pid;
  }

  TempFolder folder_;
  const fs::path pipe_ = folder_.path() / "pipe";
  LauncherProcess process_;
};

TEST_F(LauncherProcessTest, EndsOnceWithItsCodeOrSignal) {
  EXPECT_FALSE(process_.ended());
  process_.start(shell("exit 3"));
  EXPECT_EQ(end_of(process_).code, 3);
  EXPECT_FALSE(process_.ended());
  process_.start(shell("kill -TERM $$"));
  EXPECT_EQ(end_of(process_).code, 128 + SIGTERM);
  process_.start(shell("exit 0"));
  EXPECT_EQ(end_of(process_).code, 0);
}

TEST_F(LauncherProcessTest, HasTheVariablesOfItsCommand) {
  Command command = shell("test \"$TRIREME_GENERATION,$HOME\" = \"3,\"");
  command.environment = {{"TRIREME_GENERATION", "3"}, {"HOME", ""}};
  process_.start(command);
  EXPECT_EQ(end_of(process_).code, 0);
}

TEST_F(LauncherProcessTest, AMissingProgramIsNotFound) {
  EXPECT_THROW(process_.start({.argv = {"/nonexistent/mpirun"}}), NotFound);
  EXPECT_FALSE(process_.ended());
  process_.signal(SIGTERM);
  process_.kill();
  process_.leave();
  EXPECT_FALSE(process_.ended());
}

TEST_F(LauncherProcessTest, GetsSignalsAlone) {
  process_.start(
      shell("trap 'exit 9' USR2; echo $$ > " + pipe_.string() + "; while :; do sleep 0.01; done"));
  (void)told_pid();
  process_.signal(SIGUSR2);
  EXPECT_EQ(end_of(process_).code, 9);
}

TEST_F(LauncherProcessTest, IsKilledWithItsGroup) {
  process_.start(shell("sleep 600 & echo $! > " + pipe_.string() + "; wait"));
  const pid_t below = told_pid();
  process_.kill();
  EXPECT_EQ(end_of(process_).code, 128 + SIGKILL);
  wait_until([&] {
    std::string text;
    std::getline(std::ifstream("/proc/" + std::to_string(below) + "/stat") >> std::ws, text);
    return text.empty() || text.find(") Z ") != std::string::npos;
  });
}

TEST_F(LauncherProcessTest, EndKillsIt) {
  process_.start(shell("echo $$ > " + pipe_.string() + "; exec sleep 600"));
  const pid_t pid = told_pid();
  process_.end();
  EXPECT_NE(::kill(pid, 0), 0);
  EXPECT_FALSE(process_.ended());
}

// The process counts as one that hangs in the kernel.
TEST_F(LauncherProcessTest, ALeftProcessCountsAsEndedOnce) {
  process_.start(shell("echo $$ > " + pipe_.string() + "; exec sleep 600"));
  const pid_t pid = told_pid();
  process_.leave();
  const auto end = process_.ended();
  ASSERT_TRUE(end.has_value());
  EXPECT_FALSE(end->code.has_value());
  EXPECT_FALSE(process_.ended());
  EXPECT_EQ(::kill(pid, 0), 0);
  process_.start(shell("exit 4"));
  EXPECT_EQ(end_of(process_).code, 4);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

class SessionFolder : public LauncherProcessTest {
 protected:
  // Makes the folder <top>/<name>/pid.<pid>, as mpirun does.
  static fs::path make(const fs::path& top, const std::string& name, pid_t pid) {
    const fs::path path = top / name / ("pid." + std::to_string(pid));
    fs::create_directories(path / "0");
    return path;
  }
  // Starts a process that waits for a signal or for a line, and returns its pid.
  pid_t start() {
    process_.start(shell("echo $$ > " + pipe_.string() + "; read line < " + pipe_.string()));
    return told_pid();
  }

  EnvironmentVariables variables_;
  const std::string own_ = "ompi.host." + std::to_string(::getuid());
};

TEST_F(SessionFolder, OfAKilledMpirunIsRemovedAndNoOther) {
  variables_.set("OMPI_MCA_orte_tmpdir_base", std::nullopt);
  variables_.set("TMPDIR", folder_.path().string());
  const pid_t pid = start();
  const fs::path top = folder_.path();
  const fs::path own = make(top, own_, pid);
  const fs::path neighbour = make(top, own_, pid + 1);
  const fs::path of_another = make(top, "ompi.host." + std::to_string(::getuid() + 1), pid);
  const fs::path no_session = make(top, "pmix.host." + std::to_string(::getuid()), pid);
  const fs::path elsewhere = make(top / "elsewhere", "target", pid);
  fs::create_directory_symlink(elsewhere.parent_path(),
                               top / ("ompi.link." + std::to_string(::getuid())));
  process_.kill();
  (void)end_of(process_);
  EXPECT_FALSE(fs::exists(own));
  for (const fs::path& kept : {neighbour, of_another, no_session, elsewhere}) {
    EXPECT_TRUE(fs::exists(kept)) << kept;
  }
}

TEST_F(SessionFolder, IsThatOfTheParameterOfMpirun) {
  const TempFolder base;
  variables_.set("OMPI_MCA_orte_tmpdir_base", base.path().string());
  variables_.set("TMPDIR", folder_.path().string());
  const pid_t pid = start();
  const fs::path own = make(base.path(), own_, pid);
  const fs::path temporary = make(folder_.path(), own_, pid);
  process_.kill();
  (void)end_of(process_);
  EXPECT_FALSE(fs::exists(own));
  EXPECT_TRUE(fs::exists(temporary));
}

TEST_F(SessionFolder, OfAnMpirunThatHasExitedIsItsOwnAffair) {
  variables_.set("OMPI_MCA_orte_tmpdir_base", std::nullopt);
  variables_.set("TMPDIR", folder_.path().string());
  const fs::path own = make(folder_.path(), own_, start());
  std::ofstream(pipe_) << "\n";
  EXPECT_EQ(end_of(process_).code, 0);
  EXPECT_TRUE(fs::exists(own));
}

}  // namespace
}  // namespace trireme
