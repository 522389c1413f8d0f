// `trireme compare` and `trireme history` on documents as `trireme bench -J` writes them: which
// changes end with exit code 4, and what is refused.
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

constexpr int kSlower = static_cast<int>(ExitCode::below_threshold);
constexpr int kUsage = static_cast<int>(ExitCode::usage);

// Times around `middle` that differ by little.
std::vector<double> around(double middle) {
  std::vector<double> times;
  for (int i = -5; i <= 5; ++i) {
    times.push_back(middle * (1 + 0.001 * i));
  }
  return times;
}

class StudyCommands : public StudyFolder {
 protected:
  // Adds the document to the history.
  CommandRun add(json document, double time, const std::string& commit) const {
    document["time"] = time;
    document["program"]["commit"] = commit;
    return run({"history", path("history"), "--add", save("added", document)});
  }
};

TEST_F(StudyCommands, CompareFindsARegressionAndAnImprovement) {
  const std::string before = save("before", bench_json(around(100)));
  const std::string after = save("after", bench_json(around(110)));
  const CommandRun worse = run({"compare", before, after});
  EXPECT_EQ(worse.code, kSlower) << worse.err;
  EXPECT_THAT(worse.out, AllOf(HasSubstr("REGRESSION"), HasSubstr("100 -> 110"),
                               HasSubstr("+10.0 %"), HasSubstr("# 1 regression, 0 improvements")));
  const CommandRun better = run({"compare", after, before});
  EXPECT_EQ(better.code, 0);
  EXPECT_THAT(better.out, AllOf(HasSubstr("improvement"), HasSubstr("-9.1 %")));
}

TEST_F(StudyCommands, CompareForgivesWhatIsBelowTheThreshold) {
  const std::string before = save("before", bench_json(around(100)));
  const std::string after = save("after", bench_json(around(104)));
  EXPECT_EQ(run({"compare", before, after}).code, kSlower);
  const CommandRun forgiven = run({"compare", before, after, "--threshold", "5"});
  EXPECT_EQ(forgiven.code, 0);
  EXPECT_THAT(forgiven.out, HasSubstr("1 unchanged (threshold 5 %"));
}

TEST_F(StudyCommands, CompareKnowsThatHigherRatesAreBetter) {
  const std::string slow = save("slow", bench_json(around(100), "flops_per_s"));
  const std::string fast = save("fast", bench_json(around(120), "flops_per_s"));
  EXPECT_EQ(run({"compare", slow, fast}).code, 0);
  EXPECT_EQ(run({"compare", fast, slow}).code, kSlower);
}

TEST_F(StudyCommands, ComparePrintsJson) {
  const std::string before = save("before", bench_json(around(100)));
  const std::string after = save("after", bench_json(around(110)));
  const CommandRun found = run({"compare", before, after, "--json"});
  EXPECT_EQ(found.code, kSlower);
  const json document = json::parse(found.out);
  EXPECT_EQ(document["regressions"], 1);
  EXPECT_EQ(document["rows"][0]["verdict"], "regression");
  EXPECT_NEAR(document["rows"][0]["change"].get<double>(), 0.1, 1e-3);
  EXPECT_EQ(document["rows"][0]["samples_a"], 11);
}

TEST_F(StudyCommands, CompareRefusesWhatIsUnlike) {
  const std::string here = save("here", bench_json(around(100)));
  json other = bench_json(around(100));
  other["host"]["processor"] = "another";
  const std::string there = save("there", other);
  const CommandRun refused = run({"compare", here, there});
  EXPECT_EQ(refused.code, kUsage);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("differ in more than speed"), HasSubstr("another"),
                                 HasSubstr("Override with --allow-unlike")));
  const CommandRun allowed = run({"compare", here, there, "--allow-unlike"});
  EXPECT_EQ(allowed.code, 0) << allowed.err;
  EXPECT_THAT(allowed.err, HasSubstr("differ in more than speed"));
  other["command"] = "mem";
  const CommandRun never = run({"compare", here, save("mem", other), "--allow-unlike"});
  EXPECT_EQ(never.code, kUsage);
  EXPECT_THAT(never.err, Not(HasSubstr("Override")));
}

TEST_F(StudyCommands, CompareJudgesNothingByFewSamples) {
  const std::string before = save("before", bench_json({100}));
  const std::string after = save("after", bench_json({200}));
  const CommandRun run_of_one = run({"compare", before, after});
  EXPECT_NE(run_of_one.code, kSlower) << run_of_one.out;
  EXPECT_THAT(run_of_one.out, Not(HasSubstr("REGRESSION")));
}

TEST_F(StudyCommands, CompareWarnsOfABusyMachine) {
  json busy = bench_json(around(100));
  busy["waited_fraction"] = 0.4;
  const std::string before = save("before", bench_json(around(100)));
  EXPECT_THAT(run({"compare", before, save("busy", busy)}).err,
              HasSubstr("waited 40 % of its time for a core"));
}

TEST_F(StudyCommands, HistoryFindsWhenSomethingChanged) {
  for (int day = 0; day < 8; ++day) {
    const CommandRun added = add(bench_json(around(100)), 1.8e9 + day * 86400, "aaaaaaaaaaaa");
    EXPECT_THAT(added.out, HasSubstr("1 line added"));
  }
  const CommandRun calm = run({"history", path("history"), "--check"});
  EXPECT_EQ(calm.code, 0);
  EXPECT_THAT(calm.out, HasSubstr("# 1 series, 0 slower"));
  for (int day = 8; day < 16; ++day) {
    add(bench_json(around(120)), 1.8e9 + day * 86400, "bbbbbbbbbbbb");
  }
  EXPECT_EQ(run({"history", path("history")}).code, 0) << "only --check judges";
  std::ofstream(path("emptied")) << "";
  EXPECT_EQ(run({"history", path("emptied"), "--check"}).code, 65) << "nothing was checked";
  const CommandRun slower = run({"history", path("history"), "--check"});
  EXPECT_EQ(slower.code, kSlower);
  EXPECT_THAT(slower.out, AllOf(HasSubstr("+20.0 % SLOWER, commit aaaaaaaaaa -> bbbbbbbbbb"),
                                HasSubstr("# 1 series, 1 slower")));
  const json document = json::parse(run({"history", path("history"), "--json"}).out);
  EXPECT_EQ(document["slower"], 1);
  ASSERT_EQ(document["series"][0]["levels"].size(), 2U);
  EXPECT_EQ(document["series"][0]["levels"][1]["begin"], 8);
  EXPECT_EQ(run({"history", path("history"), "--check", "--threshold", "30"}).code, 0);
}

TEST_F(StudyCommands, HistoryKeepsAResultOnce) {
  add(bench_json(around(100)), 1.8e9, "a");
  const CommandRun again = add(bench_json(around(100)), 1.8e9, "a");
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.out, AllOf(HasSubstr("0 lines added"), HasSubstr("1 already there")));
}

TEST_F(StudyCommands, HistoryIgnoresATornLineAndSaysSo) {
  add(bench_json(around(100)), 1.8e9, "a");
  std::ofstream(path("history"), std::ios::app) << R"({"schema":1,"me)";
  const CommandRun shown = run({"history", path("history")});
  EXPECT_EQ(shown.code, 0);
  EXPECT_THAT(shown.err, HasSubstr("ignored 1 line that a crash has torn"));
}

TEST_F(StudyCommands, HistoryRefusesWhatHasNothingToKeep) {
  EXPECT_EQ(run({"history", path("none")}).code, static_cast<int>(ExitCode::not_found));
  const CommandRun zeros = add(bench_json({0, 0, 0}), 1.8e9, "a");
  EXPECT_EQ(zeros.code, static_cast<int>(ExitCode::bad_data));
  EXPECT_THAT(zeros.err, HasSubstr("nothing in it belongs into a history"));
  const CommandRun early = add(bench_json(around(100)), -5, "a");
  EXPECT_EQ(early.code, static_cast<int>(ExitCode::bad_data));
  EXPECT_THAT(early.err, AllOf(HasSubstr("its time is missing, zero or negative"),
                               Not(HasSubstr("all samples"))));
  EXPECT_FALSE(std::filesystem::exists(path("history")));
}

TEST_F(StudyCommands, HistoryIsKeptInNoDataset) {
  std::filesystem::create_directories(path("data/shards"));
  std::ofstream(path("data/manifest.json")) << "{}";
  const std::string file = path("data/history.jsonl");
  const CommandRun refused =
      run({"history", file, "--add", save("added", bench_json(around(100)))});
  EXPECT_EQ(refused.code, kUsage);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("FILE: " + file), HasSubstr("which is a dataset")));
  EXPECT_FALSE(std::filesystem::exists(file));
}

}  // namespace
}  // namespace trireme
