// What `trireme compare` and `trireme history` print, for people and as JSON, and their options.
#include <fstream>

#include <gmock/gmock.h>

#include "src/base/file.h"
#include "tests/app/records/study_folder.h"
#include "tests/study/result_text.h"

namespace trireme {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

class StudyOutput : public StudyFolder {
 protected:
  CommandRun compare(const json& a, const json& b, const Words& more = {}) const {
    Words words = {"compare", save("a", a), save("b", b)};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  // Adds a result on each of `days` days from the first one on.
  void add_days(int first, int days, const std::vector<double>& times,
                const std::string& commit) const {
    for (int day = first; day < first + days; ++day) {
      json document = bench_json(times);
      document["time"] = 1.8e9 + day * 86400;
      document["program"]["commit"] = commit;
      ASSERT_EQ(run({"history", path("history"), "--add", save("added", document)}).code, 0);
    }
  }
  CommandRun history(const Words& more = {}) const {
    Words words = {"history", path("history")};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
};

const std::vector<double> kFast = {99, 101, 100, 100.5, 99.5};
const std::vector<double> kSlow = {119, 121, 120, 120.5, 119.5};

TEST_F(StudyOutput, CompareSaysWhatItCompared) {
  json after = bench_json(kSlow);
  after["program"]["commit"] = "0123456789abcdef";
  after["host"]["kernel"] = "6.2";
  after["time"] = 1.8e9 + 60;
  const CommandRun found = compare(bench_json(kFast), after);
  EXPECT_THAT(found.out,
              AllOf(HasSubstr("A: " + path("a") + ", gemm, 2027-01-15 08:00 UTC, commit abc\n"),
                    HasSubstr("B: " + path("b") +
                              ", gemm, 2027-01-15 08:01 UTC, commit "
                              "0123456789\n"),
                    HasSubstr("also different: host.kernel: 6.1 and 6.2\n"),
                    Not(HasSubstr("also different: host.name")), HasSubstr("\ngemm\n  time_us: ")));
}

TEST_F(StudyOutput, ATimeThatIsNoDateIsUnknown) {
  for (const double time : {0.0, -1.0, 253402300800.0, 1e300, -1e300}) {
    json odd = bench_json(kFast);
    odd["time"] = time;
    const CommandRun found = compare(odd, bench_json(kFast));
    EXPECT_EQ(found.code, static_cast<int>(ExitCode::usage)) << "too few samples for an answer";
    EXPECT_THAT(found.out, HasSubstr("A: " + path("a") + ", gemm, at an unknown time, commit"));
  }
  json last = bench_json(kFast);
  last["time"] = 253402300799.0;
  EXPECT_THAT(compare(last, last).out, HasSubstr("9999-12-31 23:59 UTC"));
}

TEST_F(StudyOutput, ARowHasItsProbabilityAndInterval) {
  const CommandRun few = compare(bench_json(kFast), bench_json(kSlow));
  EXPECT_EQ(few.code, static_cast<int>(ExitCode::below_threshold));
  EXPECT_THAT(few.out, AllOf(HasSubstr("  time_us: 100 -> 120, +20.0 % ("),
                             HasSubstr(", p = 0.0079\n    REGRESSION\n"),
                             HasSubstr("# 1 regression, 0 improvements, 0 unchanged (threshold 2 "
                                       "%, false alarms 1 %)\n")));
  const CommandRun strict =
      compare(bench_json(kFast), bench_json(kSlow), {"--false-alarms", "0.5"});
  EXPECT_EQ(strict.code, static_cast<int>(ExitCode::usage)) << "p is above 0.005";
  EXPECT_THAT(strict.out, AllOf(HasSubstr("undecided: "), HasSubstr(", 1 undecided (threshold"),
                                HasSubstr("false alarms 0.5 %")));
}

TEST_F(StudyOutput, ARunThatHasNotFinishedIsSaidToBeSo) {
  for (const char* const name : {"cut", "whole"}) {
    std::filesystem::create_directory(path(name));
    std::ofstream(path(name) + "/metrics.jsonl")
        << ("{\"step\":1,\"step_ms\":9,\"time\":10}\n{\"step\":2,\"step_ms\":5,\"time\":11}\n"
            "{\"step\":3,\"step_ms\":5,\"time\":12}\n{\"step\":4,\"step_");
  }
  std::ofstream(path("whole") + "/DONE") << "";
  const CommandRun found = run({"compare", path("cut"), path("whole")});
  EXPECT_EQ(found.code, static_cast<int>(ExitCode::usage)) << "two steps give no answer";
  EXPECT_THAT(found.out, AllOf(HasSubstr("A: " + path("cut") +
                                         ", train, 1970-01-01 00:00 UTC, a run that has "
                                         "not finished\n"),
                               HasSubstr("B: " + path("whole") + ", train, 1970-01-01 00:00 UTC\n"),
                               HasSubstr("also different: run.finished: no and yes\n")));
}

TEST_F(StudyOutput, NumbersThatCannotBeComparedAreNotJudged) {
  const CommandRun zeros = compare(bench_json({0, 0, 0}), bench_json({0, 0, 0}));
  EXPECT_EQ(zeros.code, static_cast<int>(ExitCode::usage));
  EXPECT_THAT(zeros.out,
              AllOf(HasSubstr("no ratio\n"), HasSubstr("not judged: samples are zero or negative"),
                    HasSubstr(", 1 not judged (threshold")));
  EXPECT_THAT(zeros.err, HasSubstr("nothing could be judged"));
  const CommandRun unknown = compare(bench_json(kFast, "apples"), bench_json(kSlow, "apples"));
  EXPECT_THAT(unknown.out, HasSubstr("not judged: the unit does not tell which direction"));
  EXPECT_TRUE(
      json::parse(compare(bench_json(kFast, "apples"), bench_json(kSlow, "apples"), {"--json"})
                      .out)["rows"][0]["better"]
          .is_null());
}

TEST_F(StudyOutput, ReferencesAreShownWithoutAVerdict) {
  json before = bench_json(kFast);
  json after = bench_json(kFast);
  before["results"][0]["samples"]["peer_us"]["values"] = kFast;
  after["results"][0]["samples"]["peer_us"]["values"] = kSlow;
  const CommandRun found = compare(before, after);
  EXPECT_EQ(found.code, static_cast<int>(ExitCode::usage))
      << "another program became slower, not this one, of which five samples say nothing";
  EXPECT_THAT(found.out, AllOf(HasSubstr("peer_us: 100 -> 120"), HasSubstr("\n    reference\n"),
                               Not(HasSubstr("not judged"))));
}

TEST_F(StudyOutput, WhatOnlyOneOfThemHasIsListed) {
  json before = bench_json(kFast);
  json after = bench_json(kFast);
  before["results"].push_back(before["results"][0]);
  before["results"][1]["name"] = "old";
  after["results"].push_back(after["results"][0]);
  after["results"][1]["name"] = "new";
  const CommandRun found = compare(before, after);
  EXPECT_THAT(found.out, AllOf(HasSubstr("\n    only in A\n"), HasSubstr("\n    only in B\n")));
  const json document = json::parse(compare(before, after, {"--json"}).out);
  EXPECT_EQ(document["only_a"].size(), 1U);
  EXPECT_THAT(document["only_a"][0].get<std::string>(), HasSubstr("old"));
  EXPECT_THAT(document["only_b"][0].get<std::string>(), HasSubstr("new"));
  after["results"].erase(0);
  const CommandRun nothing = compare(before, after);
  EXPECT_EQ(nothing.code, static_cast<int>(ExitCode::usage));
  EXPECT_THAT(nothing.err, HasSubstr("have no samples in common"));
}

TEST_F(StudyOutput, NoMoreThanTenDifferencesAreListed) {
  json other = bench_json(kFast);
  for (int i = 0; i < 10; ++i) {
    other["environment"]["V" + std::to_string(i)] = "1";
  }
  EXPECT_THAT(compare(bench_json(kFast), other).err,
              AllOf(HasSubstr("environment.V9"), Not(HasSubstr("more\n"))));
  other["environment"]["W1"] = other["environment"]["W2"] = "1";
  EXPECT_THAT(compare(bench_json(kFast), other).err,
              AllOf(HasSubstr("environment.V9"), Not(HasSubstr("environment.W")),
                    HasSubstr("\n  and 2 more")));
}

TEST_F(StudyOutput, CompareJsonHasTheRules) {
  const json document =
      json::parse(compare(bench_json(kFast, "flops_per_s"), bench_json(kSlow, "flops_per_s"),
                          {"--json", "--threshold", "5", "--false-alarms", "2"})
                      .out);
  EXPECT_EQ(document["schema"], 1);
  EXPECT_EQ(document["command"], "gemm");
  EXPECT_EQ(document["a"], path("a"));
  EXPECT_EQ(document["b"], path("b"));
  EXPECT_DOUBLE_EQ(document["threshold"].get<double>(), 0.05);
  EXPECT_DOUBLE_EQ(document["alpha"].get<double>(), 0.02);
  EXPECT_EQ(document["improvements"], 1);
  EXPECT_EQ(document["regressions"], 0);
  EXPECT_EQ(document["undecided"], 0);
  EXPECT_TRUE(document["unlike"].empty());
  const json& row = document["rows"][0];
  EXPECT_EQ(row["better"], "higher");
  EXPECT_EQ(row["verdict"], "improvement");
  EXPECT_TRUE(row["why"].is_null());
  EXPECT_EQ(row["median_a"], 100.0);
  EXPECT_EQ(row["median_b"], 120.0);
  EXPECT_EQ(row["worse_probability"], 0.0);
  EXPECT_EQ(row["exact"], true);
  EXPECT_LT(row["change_low"].get<double>(), row["change"].get<double>());
  EXPECT_GT(row["change_high"].get<double>(), row["change"].get<double>());
}

TEST_F(StudyOutput, ATenthOfWaitingIsNotYetBusy) {
  json busy = bench_json(kFast);
  busy["waited_fraction"] = 0.1;
  EXPECT_THAT(compare(bench_json(kFast), busy).err, Not(HasSubstr("waited")));
  busy["waited_fraction"] = 0.11;
  EXPECT_THAT(compare(busy, bench_json(kFast)).err,
              HasSubstr(path("a") + ": the benchmark waited 11 % of its time"));
}

TEST_F(StudyOutput, RunsAreComparedByTheirSteps) {
  for (const auto& [name, step_ms] :
       std::vector<std::pair<std::string, int>>{{"r1", 100}, {"r2", 130}}) {
    std::filesystem::create_directories(path(name));
    std::ofstream(path(name) + "/DONE") << "";
    std::ofstream metrics(path(name) + "/metrics.jsonl");
    for (int step = 1; step <= 9; ++step) {
      const int first = step == 1 ? 5000 : 0;  // is left out
      metrics << json{{"step", step}, {"step_ms", step_ms + step % 3 + first}} << "\n";
    }
  }
  const CommandRun found = run({"compare", path("r1"), path("r2")});
  EXPECT_EQ(found.code, static_cast<int>(ExitCode::below_threshold)) << found.err;
  EXPECT_THAT(found.out, AllOf(HasSubstr("r1, train, at an unknown time\n"),
                               HasSubstr("step_ms: 101 -> 131")));
  const CommandRun mixed = run({"compare", path("r1"), save("a", bench_json(kFast))});
  EXPECT_EQ(mixed.code, static_cast<int>(ExitCode::usage));
  EXPECT_THAT(mixed.err, HasSubstr("one measures train, the other gemm"));
}

TEST_F(StudyOutput, OptionsAndFilesAreChecked) {
  for (const auto& [option, value] :
       std::vector<std::pair<std::string, std::string>>{{"--threshold", "-1"},
                                                        {"--threshold", "1001"},
                                                        {"--false-alarms", "0"},
                                                        {"--false-alarms", "51"}}) {
    EXPECT_EQ(compare(bench_json(kFast), bench_json(kFast), {option, value}).code,
              static_cast<int>(ExitCode::usage))
        << option << value;
  }
  EXPECT_EQ(history({"--threshold", "1001"}).code, static_cast<int>(ExitCode::usage));
  EXPECT_EQ(run({"compare", path("absent"), path("absent")}).code,
            static_cast<int>(ExitCode::not_found));
  EXPECT_EQ(compare(json::object(), bench_json(kFast)).code, static_cast<int>(ExitCode::bad_data));
  json newer = bench_json(kFast);
  newer["schema"] = 3;
  EXPECT_THAT(compare(newer, bench_json(kFast)).err, HasSubstr("it has version 3 of the format"));
}

TEST_F(StudyOutput, HistoryShowsLevelsByDay) {
  add_days(0, 8, kSlow, "aaaaaaaaaaaaaaaa");
  add_days(8, 8, kFast, "aaaaaaaaaaaaaaaa");
  const CommandRun shown = history({"--check"});
  EXPECT_EQ(shown.code, 0) << "faster is no fault";
  EXPECT_THAT(shown.out, AllOf(testing::StartsWith("gemm"), HasSubstr(": time_us on n1\n"),
                               HasSubstr("  2027-01-15 to 2027-01-22     8 x  median 120      \n"),
                               HasSubstr("  2027-01-23 to 2027-01-30     8 x  median 100        "
                                         "-16.7 % faster\n"),
                               HasSubstr("# 1 series, 0 slower since the last change\n")))
      << "the commit is the same";
}

TEST_F(StudyOutput, OnlyTheLastChangeCounts) {
  add_days(0, 8, kFast, "a");
  add_days(8, 8, kSlow, "b");
  EXPECT_EQ(history({"--check"}).code, static_cast<int>(ExitCode::below_threshold));
  add_days(16, 8, kFast, "c");
  EXPECT_EQ(history({"--check"}).code, 0);
}

TEST_F(StudyOutput, HistoryJsonHasEntriesAndLevels) {
  add_days(0, 2, kFast, "a");
  const json document = json::parse(history({"--json"}).out);
  EXPECT_EQ(document["schema"], 1);
  EXPECT_EQ(document["file"], path("history"));
  ASSERT_EQ(document["series"].size(), 1U);
  const json& series = document["series"][0];
  EXPECT_EQ(series["command"], "gemm");
  EXPECT_EQ(series["host"], "n1");
  EXPECT_EQ(series["samples"], "time_us");
  ASSERT_EQ(series["entries"].size(), 2U);
  EXPECT_EQ(series["entries"][1]["time"], 1.8e9 + 86400);
  EXPECT_EQ(series["entries"][0]["median"], 100.0);
  EXPECT_EQ(series["entries"][0]["commit"], "a");
  EXPECT_EQ(series["levels"][0]["end"], 2);
  EXPECT_EQ(series["levels"][0]["slower"], false);
}

TEST_F(StudyOutput, HistoryTakesSeveralResultsAndShowsAnyYear) {
  json far = bench_json(kFast);
  far["time"] = 1e15;
  json other = bench_json(kFast);
  other["host"]["name"] = "n2";
  const CommandRun added =
      run({"history", path("history"), "--add", save("x", far), "--add", save("y", other)});
  EXPECT_EQ(added.out, path("x") + ": 1 line added to " + path("history") + "\n" + path("y") +
                           ": 1 line added to " + path("history") + "\n");
  EXPECT_THAT(history().out, AllOf(HasSubstr("9999-12-31 to 9999-12-31"),
                                   HasSubstr(": time_us on n2\n"), HasSubstr("# 2 series, ")));
}

}  // namespace
}  // namespace trireme
