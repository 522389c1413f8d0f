// Tests what main() and all commands share: the rank before MPI starts, the version, and the end of
// a process after an error.
#include "src/app/command/app_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/app/command/launcher_rank.h"
#include "src/app/command/version.h"
#include "src/app/run/fault_sites.h"
#include "src/base/file.h"
#include "src/base/log.h"
#include "tests/app/command_run.h"
#include "tests/support/environment_variables.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

TEST(LauncherRank, IsThatOfMpirunThenPmixThenSlurm) {
  EnvironmentVariables variables;
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"}) {
    variables.set(name, std::nullopt);
  }
  EXPECT_EQ(rank_before_start(), 0);
  variables.set("SLURM_PROCID", "3");
  EXPECT_EQ(rank_before_start(), 3);
  variables.set("PMIX_RANK", "2");
  EXPECT_EQ(rank_before_start(), 2);
  variables.set("OMPI_COMM_WORLD_RANK", "10");
  EXPECT_EQ(rank_before_start(), 10);
}

CommandRun version(const std::vector<std::string>& words) {
  return run_command_line(
      [](CommandLine& app, int& exit_code) {
        add_version_flags(app, exit_code);
        app.add_command("work", "Works");
      },
      words);
}

TEST(Version, IsPrintedOnRequest) {
  const CommandRun text = version({"--version"});
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out, MatchesRegex("trireme [0-9.]+ \\(.*\\)\n"));
  const auto json = nlohmann::json::parse(version({"--version", "--json"}).out);
  EXPECT_EQ(json["program"], "trireme");
  EXPECT_THAT(text.out, HasSubstr(json["version"].get<std::string>()));
  for (const char* part : {"compiler", "mpi", "hdf5", "onednn", "fmt"}) {
    EXPECT_NE(json["built_with"].at(part), "") << part;
  }
}

TEST(Version, ALineWithoutACommandGetsTheHelpAndCode2) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{}, {"--json"}}) {
    const CommandRun run = version(words);
    EXPECT_EQ(run.code, 2);
    EXPECT_THAT(run.out, testing::StartsWith("Usage: trireme "));
  }
  const CommandRun run = version({"work"});
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.out, "");
}

TEST(ComputeThreads, OneThreadNeedsNoWarning) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(compute_threads(1), 1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(EndWith, PrintsTheMessageAndExitsWithTheCode) {
  AppContext context;
  EXPECT_EXIT(end_with(context, ExitCode::io, "io", "the disk\nis \x1b[2J full"),
              testing::ExitedWithCode(74), "^trireme: the disk\nis \\\\x1b\\[2J full\n$");
}

// The child process of the death test writes the reason, which is read here.
TEST(EndWith, RecordsTheReasonInTheRunsFolder) {
  const TempFolder folder;
  AppContext context;
  context.run.emplace(folder.path());
  context.status = {.phase = "train", .step = 41};
  EXPECT_EXIT(end_with(context, ExitCode::bad_data, "data", "shard 3 is damaged"),
              testing::ExitedWithCode(65), "shard 3 is damaged");
  const auto reason = nlohmann::json::parse(read_file(folder.path() / "exit_reason.json"));
  EXPECT_EQ(reason["code"], 65);
  EXPECT_EQ(reason["kind"], "data");
  EXPECT_EQ(reason["message"], "shard 3 is damaged");
  EXPECT_EQ(reason["step"], 41);
  EXPECT_EQ(reason["phase"], "train");
  EXPECT_EQ(reason["rank"], 0);
  EXPECT_EQ(reason["signal"], 0);
}

TEST(EndWith, TellsTheWatcherOfTheRank) {
  const TempFolder folder;
  make_directories(progress_folder(folder.path()));
  const std::filesystem::path page = progress_file(folder.path(), 0);
  AppContext context;
  context.progress = std::make_unique<ProgressPage>(page, 0, 1);
  EXPECT_EXIT(end_with(context, ExitCode::device, "device", "out of memory"),
              testing::ExitedWithCode(76), "out of memory");
  const auto seen = read_progress(page);
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ(seen->exit_code, 76);
}

TEST(EndWith, NamesTheRankThatIsToBlame) {
  EnvironmentVariables variables;
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "SLURM_STEP_ID"}) {
    variables.set(name, std::nullopt);
  }
  const TempFolder folder;
  AppContext context;
  EXPECT_FALSE(context.has_session());
  EXPECT_EQ(context.session().world().size(), 1);
  EXPECT_TRUE(context.has_session());
  EXPECT_EQ(&context.session(), &context.session());
  context.run.emplace(folder.path());
  EXPECT_EXIT(end_with(context, ExitCode::hang, "hang", "rank 0 hangs", 0),
              testing::ExitedWithCode(85), "^trireme: rank 0 hangs\n$");
  const auto reason = nlohmann::json::parse(read_file(folder.path() / "exit_reason.json"));
  EXPECT_EQ(reason["host"], host_name());
}

TEST(AppContext, FaultsArePlannedForTheRankAndAttempt) {
  EnvironmentVariables variables;
  variables.set("TRIREME_FAULTS", "start.init@2:0:1:exit=7");
  variables.set("TRIREME_GENERATION", std::nullopt);
  const auto start = [] {
    AppContext context;
    context.fault_sites = fault_sites();
    (void)context.session();
    std::_Exit(0);
  };
  EXPECT_EXIT(start(), testing::ExitedWithCode(0), "");
  variables.set("TRIREME_GENERATION", "2");
  EXPECT_EXIT(start(), testing::ExitedWithCode(7), "");
  variables.set("TRIREME_FAULTS", "start.nowhere:0:1:kill");
  AppContext context;
  context.fault_sites = fault_sites();
  EXPECT_THROW((void)context.session(), ConfigError);
  EXPECT_FALSE(context.has_session());
}

}  // namespace
}  // namespace trireme
