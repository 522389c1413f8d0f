// `trireme compare`: its exit codes, on which pipelines rely, and its warnings. How it decides is
// tested in tests/study.
#include "src/app/study/compare_command.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/app/command_run.h"
#include "tests/study/result_text.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class CompareCommand : public testing::Test {
 protected:
  std::string result(const std::string& name, const nlohmann::json& document) const {
    const std::string path = (folder_.path() / name).string();
    std::ofstream(path) << document.dump();
    return path;
  }
  static CommandRun compare(std::vector<std::string> words) {
    words.insert(words.begin(), "compare");
    return run_command_line(
        [](CommandLine& app, int& exit_code) { add_compare_command(app, exit_code); }, words);
  }

  TempFolder folder_;
};

std::vector<double> steady(double level, int count) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) {
    values.push_back(level * (1 + 0.0001 * (i * 7 % 10)));
  }
  return values;
}

TEST_F(CompareCommand, AnAnswerWithoutARegressionIsASuccess) {
  const std::string a = result("a.json", bench_json(steady(100, 30)));
  EXPECT_EQ(compare({a, a}).code, 0);
  EXPECT_THAT(compare({a, a}).out, HasSubstr("1 unchanged"));
  const std::string constant = result("constant.json", bench_json(std::vector<double>(30, 100)));
  EXPECT_EQ(compare({constant, constant}).code, 0);
  EXPECT_EQ(compare({a, result("slow.json", bench_json(steady(120, 30)))}).code, 4);
}

TEST_F(CompareCommand, QuestionsWithoutACompleteAnswerAreNamed) {
  nlohmann::json document = bench_json(steady(100, 30));
  const std::string a = result("a.json", document);
  document["results"][0]["unfinished"] = true;
  document["failed"] = {{{"question", "gemm"}, {"reason", "did not end in time"}}};
  const std::string b = result("b.json", document);
  const CommandRun run = compare({a, b});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("\nB: no complete answer of gemm: did not end in time\n"),
                             HasSubstr("1 unchanged"), Not(HasSubstr("A: no complete"))));
  const auto found = nlohmann::json::parse(compare({a, b, "--json"}).out);
  EXPECT_TRUE(found.at("failed_a").empty());
  EXPECT_EQ(found.at("failed_b"), nlohmann::json({"gemm: did not end in time"}));
}

TEST_F(CompareCommand, NoAnswerIsNoSuccess) {
  const std::string few = result("few.json", bench_json({100, 101, 102}));
  const CommandRun undecided = compare({few, few});
  EXPECT_EQ(undecided.code, 2);
  EXPECT_THAT(undecided.out, HasSubstr("1 undecided"));
  EXPECT_THAT(undecided.err,
              AllOf(HasSubstr("nothing could be decided"), HasSubstr("take more samples")));
  EXPECT_EQ(compare({few, few, "--json"}).code, 2);
  const std::string zero = result("zero.json", bench_json({0, 0, 0}));
  EXPECT_THAT(compare({zero, zero}).err, HasSubstr("nothing could be judged"));
}

TEST_F(CompareCommand, AnAnswerBesideAnUndecidedRowCounts) {
  nlohmann::json document = bench_json(steady(100, 30));
  document["results"].push_back(bench_json({100, 101, 102})["results"][0]);
  document["results"][1]["params"]["m"] = 97;
  const std::string both = result("both.json", document);
  const CommandRun run = compare({both, both});
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.out, HasSubstr("1 unchanged, 1 undecided"));
}

TEST_F(CompareCommand, WarnsOnceOfDamagedLines) {
  std::ofstream metrics(folder_.path() / "metrics.jsonl");
  for (const double value : steady(100, 40)) {
    metrics << "{\"step\": 1, \"step_ms\": " << value << "}\n";
  }
  metrics << "torn {\n" << std::flush;
  const std::string run = folder_.path().string();
  EXPECT_EQ(compare({run, run}).err,
            "trireme: " + run + "/metrics.jsonl: ignoring 1 damaged line (line 41)\n");
}

}  // namespace
}  // namespace trireme
