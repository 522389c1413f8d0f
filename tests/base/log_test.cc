#include "src/base/log.h"

#include <sstream>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ExitedWithCode;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<nlohmann::json> lines_of(const std::filesystem::path& path) {
  std::istringstream text(read_file(path));
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(text, line);) {
    lines.push_back(nlohmann::json::parse(line));
  }
  return lines;
}

TEST(Log, ProgramsReadJsonLines) {
  const TempFolder folder;
  {
    Log log({.rank = 3, .ranks = 8, .host = "node7", .folder = folder.path() / "logs"});
    log.info("hello \"world\"\n\xff");
    log.event("checkpoint", {{"step", 100}, {"loss", std::nan("")}});
  }
  const auto lines = lines_of(folder.path() / "logs/rank-00003.jsonl");
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0]["event"], "start");
  EXPECT_EQ(lines[0]["pid"], ::getpid());
  EXPECT_EQ(lines[0]["rank"], 3);
  EXPECT_EQ(lines[0]["ranks"], 8);
  EXPECT_EQ(lines[0]["host"], "node7");
  EXPECT_GT(lines[0]["time"].get<double>(), 1.7e9);
  EXPECT_EQ(lines[1]["level"], "info");
  EXPECT_THAT(lines[1]["message"].get<std::string>(), HasSubstr("hello \"world\"\n"));
  EXPECT_EQ(lines[2]["event"], "checkpoint");
  EXPECT_EQ(lines[2]["step"], 100);
  EXPECT_TRUE(lines[2]["loss"].is_null());
}

TEST(Log, ASecondStartGoesOnInTheSameFile) {
  const TempFolder folder;
  for (int start = 0; start < 2; ++start) {
    const Log log({.folder = folder.path()});
  }
  EXPECT_EQ(lines_of(log_file(folder.path(), 0)).size(), 2U);
}

TEST(Log, PeopleHearRankZeroAndEveryWarning) {
  testing::internal::CaptureStderr();
  {
    Log zero({.rank = 0, .ranks = 2});
    Log one({.rank = 1, .ranks = 2});
    Log alone({.terminal_level = LogLevel::warning});
    zero.info("from zero");
    zero.debug("too fine");
    one.info("unheard");
    one.warning("heard");
    alone.info("also unheard");
    alone.error("broken");
  }
  const std::string seen = testing::internal::GetCapturedStderr();
  EXPECT_THAT(seen, ContainsRegex("20[0-9-]+ [0-9:]+ from zero\n"));
  EXPECT_THAT(seen, HasSubstr("rank 1: warning: heard\n"));
  EXPECT_THAT(seen, HasSubstr(" error: broken\n"));
  EXPECT_THAT(seen, Not(HasSubstr("unheard")));
  EXPECT_THAT(seen, Not(HasSubstr("too fine")));
}

TEST(Log, TablesAreForPeopleAndEventsForPrograms) {
  const TempFolder folder;
  testing::internal::CaptureStderr();
  {
    Log log({.folder = folder.path()});
    log.table("the ranks:", {"rank  host", "   0  n1"});
    log.event("layout", {{"dp", 2}}, "layout: dp 2");
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              ContainsRegex(" the ranks:\n  rank  host\n     0  n1\n.* layout: dp 2\n"));
  const auto lines = lines_of(log_file(folder.path(), 0));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1]["event"], "layout");
  EXPECT_FALSE(lines[1].contains("message"));
}

TEST(Log, PrintsTheLinesOfTheFileAsJson) {
  testing::internal::CaptureStderr();
  {
    Log log({.rank = 0, .ranks = 2, .json = true});
    Log one({.rank = 1, .ranks = 2, .json = true});
    log.table("unseen", {"row"});
    log.event("layout", {{"dp", 2}}, "unseen");
    one.event("rank", {});
    one.warning("slow");
  }
  std::istringstream seen(testing::internal::GetCapturedStderr());
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(seen, line);) {
    lines.push_back(nlohmann::json::parse(line));
  }
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0]["event"], "start");
  EXPECT_EQ(lines[1]["dp"], 2);
  EXPECT_EQ(lines[2]["message"], "slow");
}

// No line is lost until its file is replaced, and no file exceeds the limit.
TEST(Log, RotatesLongFiles) {
  const TempFolder folder;
  constexpr std::uintmax_t kBytes = 4000;
  {
    Log log({.terminal_level = LogLevel::error, .folder = folder.path(), .rotate_bytes = kBytes});
    for (int i = 0; i < 100; ++i) {
      log.info(fmt::format("line {}", i));
    }
    EXPECT_EQ(log.dropped_lines(), 0);
  }
  const auto newer = lines_of(log_file(folder.path(), 0));
  const auto older = lines_of(older_log_file(folder.path(), 0));
  EXPECT_EQ(newer.back()["message"], "line 99");
  const auto number = [](const nlohmann::json& line) {
    return std::stoi(line["message"].get<std::string>().substr(5));
  };
  EXPECT_EQ(number(older.back()) + 1, number(newer.front()));
  EXPECT_LE(std::filesystem::file_size(log_file(folder.path(), 0)), kBytes);
  EXPECT_LE(std::filesystem::file_size(older_log_file(folder.path(), 0)), kBytes);
}

TEST(Color, FollowsTheEnvironment) {
  const auto colored = [](const char* no, const char* force, const char* term) {
    ::setenv("NO_COLOR", no, 1);
    ::setenv("CLICOLOR_FORCE", force, 1);
    ::setenv("TERM", term, 1);
    const bool uses = use_color(false);
    ::unsetenv("NO_COLOR");
    ::unsetenv("CLICOLOR_FORCE");
    return uses;
  };
  EXPECT_FALSE(colored("", "", "xterm"));
  EXPECT_TRUE(colored("", "1", "xterm"));
  EXPECT_FALSE(colored("", "0", "xterm"));
  EXPECT_FALSE(colored("1", "1", "xterm"));
  EXPECT_FALSE(colored("", "1", "dumb"));
}

// A log writes to a pseudo-terminal here.
TEST(Color, ATerminalSeesWarningsInColorUnlessNoColorIsSet) {
  const auto seen_on_terminal = [] {
    const int master = ::posix_openpt(O_RDWR | O_NOCTTY);
    EXPECT_GE(master, 0);
    EXPECT_EQ(::grantpt(master) | ::unlockpt(master), 0);
    const int terminal = ::open(::ptsname(master), O_RDWR | O_NOCTTY);
    const int before = ::dup(STDERR_FILENO);
    ::dup2(terminal, STDERR_FILENO);
    Log({}).warning("hot");
    ::dup2(before, STDERR_FILENO);
    std::array<char, 512> text{};
    const ssize_t got = ::read(master, text.data(), text.size());
    ::close(before);
    ::close(terminal);
    ::close(master);
    return std::string(text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  };
  ::setenv("TERM", "xterm", 1);
  EXPECT_THAT(seen_on_terminal(), HasSubstr("\x1b[33m"));
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_THAT(seen_on_terminal(), AllOf(HasSubstr("hot"), Not(HasSubstr("\x1b[33m"))));
  ::unsetenv("NO_COLOR");
}

TEST(Log, ThreadsDoNotMixTheirLines) {
  const TempFolder folder;
  {
    Log log({.terminal_level = LogLevel::error, .folder = folder.path()});
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&log] {
        for (int i = 0; i < 200; ++i) {
          log.info(std::string(300, 'x'));
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
  EXPECT_EQ(lines_of(log_file(folder.path(), 0)).size(), 801U);
}

// If the reader of a pipe exits (trireme ... 2>&1 | head), SIGPIPE must not end the training.
TEST(LogDeathTest, SurvivesAPipeWithoutReader) {
  EXPECT_EXIT(
      {
        int ends[2];
        if (::pipe(ends) != 0 || ::dup2(ends[1], STDERR_FILENO) < 0) {
          ::_exit(9);
        }
        ::close(ends[0]);
        Log log({});
        log.error("nobody hears this");
        ::_exit(0);
      },
      ExitedWithCode(0), "");
}

TEST(LogDeathTest, AClosedStderrDoesNotLeadIntoAFile) {
  const TempFolder folder;
  EXPECT_EXIT(
      {
        ::close(STDERR_FILENO);
        ::close(STDIN_FILENO);
        open_standard_streams();
        Log log({.folder = folder.path()});
        log.error("for people");
        ::_exit(0);
      },
      ExitedWithCode(0), "");
  for (const nlohmann::json& line : lines_of(log_file(folder.path(), 0))) {
    EXPECT_TRUE(line.is_object());
  }
}

TEST(Log, GoesOnWhenTheDiskIsFull) {
  const SmallFileSystem disk(std::size_t{64} << 10);
  if (!disk.mounted()) {
    GTEST_SKIP() << "needs to mount a file system: run as root with CAP_SYS_ADMIN";
  }
  testing::internal::CaptureStderr();
  std::int64_t dropped = 0;
  {
    Log log({.terminal_level = LogLevel::warning, .folder = disk.path()});
    for (int i = 0; i < 500; ++i) {
      log.info(std::string(1000, 'x'));
    }
    dropped = log.dropped_lines();
  }
  const std::string seen = testing::internal::GetCapturedStderr();
  EXPECT_GT(dropped, 0);
  EXPECT_EQ(static_cast<std::int64_t>(lines_of(log_file(disk.path(), 0)).size()) + dropped, 501);
  const std::string path = log_file(disk.path(), 0).string();
  EXPECT_THAT(seen, HasSubstr("warning: cannot write " + path + ": No space left on device"));
  EXPECT_THAT(seen, HasSubstr(fmt::format("{} lacks {} lines that could", path, dropped)));
  EXPECT_EQ(std::count(seen.begin(), seen.end(), '\n'), 2) << seen;
}

TEST(Log, AFolderThatCannotBeIsAnError) { EXPECT_THROW(Log({.folder = "/dev/null/logs"}), Error); }

}  // namespace
}  // namespace trireme
