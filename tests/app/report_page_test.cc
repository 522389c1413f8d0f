// `trireme report`: which runs and results a page takes from files and folders, and what it says
// about those that it cannot read. What the sections show is tested in tests/report.
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/app/run/report_page_command.h"
#include "src/base/file.h"
#include "tests/app/command_run.h"
#include "tests/study/result_text.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ReportPage : public testing::Test {
 protected:
  ReportPage() : before_(fs::current_path()) { fs::current_path(folder_.path()); }
  ~ReportPage() override { fs::current_path(before_); }

  static void write(const fs::path& path, const std::string& text) {
    if (path.has_parent_path()) {
      fs::create_directories(path.parent_path());
    }
    std::ofstream(path) << text;
  }
  static void run_folder(const fs::path& path) {
    write(path / "metrics.jsonl",
          "{\"step\": 10, \"loss\": 3, \"step_ms\": 100, \"time\": 1000}\n");
    write(path / "config.yaml", "train: {steps: 10}\n");
  }
  static void result(const fs::path& path) { write(path, bench_json({1, 2, 3}).dump()); }
  static CommandRun report(std::vector<std::string> words) {
    words.insert(words.begin(), "report");
    return run_command_line([](CommandLine& app, int&) { add_report_page_command(app); }, words);
  }
  static std::string markdown(std::vector<std::string> words) {
    words.push_back("--markdown");
    const CommandRun run = report(words);
    EXPECT_EQ(run.code, 0) << run.err;
    return run.out;
  }

  TempFolder folder_;
  const fs::path before_;
};

TEST_F(ReportPage, ThePageIsAFileUnlessItIsMarkdown) {
  run_folder("first");
  const CommandRun page = report({"first"});
  EXPECT_EQ(page.code, 0) << page.err;
  EXPECT_EQ(page.out, "report.html\n");
  EXPECT_THAT(read_file("report.html"), HasSubstr("<title>Report on run first</title>"));
  EXPECT_EQ(report({"first", "-o", "other.html"}).out, "other.html\n");
  EXPECT_TRUE(fs::exists("other.html"));
  EXPECT_THAT(markdown({"first"}), testing::StartsWith("# Report on run first\n"));
  const CommandRun file = report({"first", "--markdown", "-o", "page.md"});
  EXPECT_EQ(file.out, "page.md\n");
  EXPECT_EQ(read_file("page.md").substr(0, 23), "# Report on run first\n\n");
}

TEST_F(ReportPage, DamagedLinesAreSaidOnceOnStderrAndOnThePage) {
  run_folder("first");
  std::ofstream("first/metrics.jsonl", std::ios::app) << "torn {\n";
  write("first/journal.jsonl", "[]\n{}\n");
  const CommandRun page = report({"first", "--markdown"});
  EXPECT_EQ(page.code, 0);
  EXPECT_EQ(page.err,
            "trireme: first/metrics.jsonl: ignoring 1 damaged line (line 2)\n"
            "trireme: first/journal.jsonl: ignoring 2 damaged lines (the first is line 1)\n");
  EXPECT_THAT(page.out, AllOf(HasSubstr("metrics.jsonl: 1 damaged line (line 2) left out"),
                              HasSubstr("journal.jsonl: 2 damaged lines")));
}

TEST_F(ReportPage, TheTitleFollowsFromWhatItShows) {
  run_folder("first");
  run_folder("second");
  result("bench.json");
  EXPECT_THAT(markdown({"bench.json"}), testing::StartsWith("# Report on benchmarks\n"));
  EXPECT_THAT(markdown({"first", "bench.json"}),
              testing::StartsWith("# Report on runs and benchmarks\n"));
  EXPECT_THAT(markdown({"first", "second"}),
              testing::StartsWith("# Report on runs and benchmarks\n"));
  EXPECT_THAT(markdown({"first", "--title", "New machine"}),
              testing::StartsWith("# New machine\n"));
  EXPECT_THAT(markdown({"first", "second", "bench.json"}),
              HasSubstr("from 2 runs and 1 result file."));
  EXPECT_THAT(markdown({"first"}), HasSubstr("from 1 run and 0 result files."));
}

TEST_F(ReportPage, SeveralRunsAreComparedFirst) {
  run_folder("first");
  run_folder("second");
  EXPECT_THAT(markdown({"first"}), Not(HasSubstr("Comparison of the runs")));
  const std::string both = markdown({"first", "second"});
  EXPECT_LT(both.find("## Comparison of the runs"), both.find("## Run first"));
  EXPECT_LT(both.find("## Run first"), both.find("## Run second"));
}

TEST_F(ReportPage, FoldersAreSearchedInTheOrderOfTheirNames) {
  run_folder("all/b/run-z");
  run_folder("all/a/run-y");
  result("all/c/bench.json");
  write("all/c/notes.json", "{\"note\": 1}");
  write("all/c/bench.json.old", bench_json({1}).dump());
  fs::create_directory_symlink("a", "all/link");
  const std::string text = markdown({"all"});
  EXPECT_THAT(text, AllOf(HasSubstr("from 2 runs and 1 result file."), HasSubstr("c/bench.json")));
  EXPECT_LT(text.find("run-y"), text.find("run-z"));
}

TEST_F(ReportPage, FoldersAreSearchedSixDeep) {
  run_folder("all/2/3/4/5/6/run-in");
  run_folder("all/2/3/4/5/6/7/run-out");
  const std::string text = markdown({"all"});
  EXPECT_THAT(text, AllOf(HasSubstr("run-in"), Not(HasSubstr("run-out"))));
}

TEST_F(ReportPage, AConfigurationDoesNotHideWhatLiesBelowIt) {
  run_folder("site/first");
  result("site/bench.json");
  write("site/config.yaml", "train: {steps: 10}\n");
  EXPECT_THAT(markdown({"site"}), AllOf(HasSubstr("from 1 run and 1 result file."),
                                        HasSubstr("## Run first"), HasSubstr("bench.json")));
  fs::create_directory("all");
  fs::rename("site", "all/site");
  EXPECT_THAT(markdown({"all"}), HasSubstr("from 1 run and 1 result file."));
  write("new/config.yaml", "train: {steps: 10}\n");
  EXPECT_THAT(markdown({"new"}), HasSubstr("from 1 run and 0 result files."));
}

TEST_F(ReportPage, RunsAndResultsInARunsFolderAreShown) {
  run_folder("first");
  run_folder("first/again");
  result("first/bench.json");
  write("first/prediction.json", "{}");
  result("first/checkpoints/step-00000001/manifest.json");
  const std::string text = markdown({"first"});
  EXPECT_THAT(text, AllOf(HasSubstr("from 2 runs and 1 result file."), Not(HasSubstr("Left out")),
                          Not(HasSubstr("manifest.json"))));
}

TEST_F(ReportPage, ADamagedFileInAFolderIsARemarkAndAnErrorByItself) {
  result("all/good.json");
  std::string damaged = bench_json({1, 2}).dump();
  damaged.replace(damaged.find("\"results\":[{"), 12, "\"results\":[7,{");
  write("all/bad.json", damaged);
  const std::string text = markdown({"all"});
  EXPECT_THAT(text, AllOf(HasSubstr("What could not be read"), HasSubstr("Left out all/bad.json: "),
                          HasSubstr("from 0 runs and 1 result file.")));
  const CommandRun alone = report({"all/bad.json"});
  EXPECT_EQ(alone.code, static_cast<int>(ExitCode::bad_data));
  EXPECT_THAT(alone.err, HasSubstr("all/bad.json: "));
}

TEST_F(ReportPage, OddFilesInAFolderAreNamed) {
  result("all/good.json");
  write("all/empty.json", "");
  write("all/cut.json", bench_json({1}).dump().substr(0, 5));
  write("all/array.json", "[1]");
  write("all/odd.json",
        R"({"schema":1,"accepted":true,"seconds":1,"program":{"commit":5,"version":"1"},)"
        R"("nodes":[],"links":[],"drain_commands":[]})");
  const std::string text = markdown({"all"});
  for (const char* name : {"all/empty.json", "all/cut.json", "all/array.json"}) {
    EXPECT_THAT(text, HasSubstr(name));
  }
  EXPECT_THAT(text, AllOf(HasSubstr("Left out 3 JSON files that are no results or incomplete: "),
                          HasSubstr("Left out all/odd.json: "),
                          HasSubstr("from 0 runs and 1 result file.")));
  const CommandRun alone = report({"all/odd.json"});
  EXPECT_EQ(alone.code, static_cast<int>(ExitCode::bad_data));
  EXPECT_THAT(alone.err, AllOf(HasSubstr("all/odd.json"), Not(HasSubstr("json.exception"))));
}

TEST_F(ReportPage, AComparisonIsNoResult) {
  write("compared.json",
        R"({"schema":1,"a":"a","b":"b","command":"gemm","threshold":0.02,"alpha":0.01})");
  EXPECT_THAT(report({"compared.json"}).err, HasSubstr("trireme compare --json prints"));
}

TEST_F(ReportPage, APageReplacesNoneOfItsInputs) {
  result("results/a.json");
  result("results/b.json");
  run_folder("run");
  const std::string before = read_file("results/a.json");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"results/a.json", "-o", "results/a.json"},
        {"-o", "results/a.json", "results/../results/a.json"},
        {"results", "-o", "results/a.json"}}) {
    const CommandRun run = report(words);
    EXPECT_EQ(run.code, static_cast<int>(ExitCode::usage));
    EXPECT_THAT(run.err, HasSubstr("would replace a file"));
  }
  const CommandRun own = report({"run", "-o", "run/config.yaml"});
  EXPECT_EQ(own.code, static_cast<int>(ExitCode::usage));
  EXPECT_THAT(own.err, HasSubstr("-o run/config.yaml belongs to the run in"));
  EXPECT_EQ(read_file("results/a.json"), before);
  EXPECT_EQ(report({"run", "-o", "run/report.html"}).code, 0);
  EXPECT_EQ(report({"run", "-o", "run/report.html"}).code, 0) << "its own page is replaced";
}

TEST_F(ReportPage, SecretsInCommandsAreRemoved) {
  run_folder("run");
  write("run/config.yaml", "launch:\n  on_event: \"notify --token hunter2x\"\n");
  EXPECT_THAT(markdown({"run"}), AllOf(HasSubstr("REDACTED"), Not(HasSubstr("hunter2x"))));
}

TEST_F(ReportPage, WhereNothingIsFoundThereIsNoPage) {
  fs::create_directories("empty");
  const CommandRun empty = report({"empty"});
  EXPECT_EQ(empty.code, static_cast<int>(ExitCode::not_found));
  EXPECT_THAT(empty.err, HasSubstr("empty holds neither runs nor results of trireme bench -J"));
  const CommandRun absent = report({"absent"});
  EXPECT_EQ(absent.code, static_cast<int>(ExitCode::not_found));
  EXPECT_THAT(absent.err, HasSubstr("absent: there is no such file or folder"));
  write("other.json", "{}");
  EXPECT_EQ(report({"other.json"}).code, static_cast<int>(ExitCode::bad_data));
  EXPECT_FALSE(fs::exists("report.html"));
}

// Exactly as many as fit are all shown, and nothing is said to be missing.
TEST_F(ReportPage, APageShowsTwoHundredAndSaysWhenThereAreMore) {
  for (int i = 0; i < 200; ++i) {
    result(fmt::format("all/{:03}.json", i));
  }
  const std::string full = markdown({"all"});
  EXPECT_THAT(full,
              AllOf(HasSubstr("from 0 runs and 200 result files."), Not(HasSubstr("are shown."))));
  result("more/200.json");
  const std::string more = markdown({"all", "more"});
  EXPECT_THAT(more, AllOf(HasSubstr("from 0 runs and 200 result files."),
                          HasSubstr("Only the first 200 runs and files are shown.")));
  result("all/200.json");
  EXPECT_THAT(markdown({"all"}), HasSubstr("Only the first 200 runs and files are shown."));
  EXPECT_THAT(markdown({"all", "more/200.json"}), HasSubstr("200 result files."));
}

}  // namespace
}  // namespace trireme
