#include <atomic>
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "benchmarks/all/budget.h"
#include "benchmarks/all/picture.h"
#include "benchmarks/all/questions.h"
#include "benchmarks/all/time_guard.h"
#include "benchmarks/measured_rows.h"
#include "src/base/error.h"

namespace trireme {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

constexpr const char* kLate = "did not end in time";

TEST(Budget, SharesFollowTheWeights) {
  const Budget budget({1, 3, 4}, 80);
  EXPECT_DOUBLE_EQ(budget.share(0, 0), 10);
  EXPECT_DOUBLE_EQ(budget.share(1, 10), 30);
  EXPECT_DOUBLE_EQ(budget.share(2, 40), 40);
}

TEST(Budget, LaterQuestionsGetWhatIsLeft) {
  const Budget budget({1, 3, 4}, 80);
  EXPECT_DOUBLE_EQ(budget.share(1, 3), 33);   // the first one was quick
  EXPECT_DOUBLE_EQ(budget.share(1, 45), 15);  // it was slow
  EXPECT_DOUBLE_EQ(budget.share(2, 90), 0);   // nothing is left
}

// Two nodes, one of which needed much longer for the first question, measure the same sizes.
TEST(Budget, SizesDoNotFollowTheSpeedOfTheNode) {
  const Budget budget({1, 3, 4}, 80);
  EXPECT_DOUBLE_EQ(budget.planned(1), 30);
  for (const double spent : {1.0, 10.0, 30.0}) {
    EXPECT_DOUBLE_EQ(budget.for_sizes(1, spent), 30) << spent;
  }
  EXPECT_DOUBLE_EQ(budget.for_sizes(2, 0), 40) << "the time that others saved changes no size";
  EXPECT_DOUBLE_EQ(budget.for_sizes(1, 70), budget.share(1, 70)) << "or it would not end in time";
}

TEST(Budget, SizesAreRungsOfALadder) {
  const std::vector<double> ladder = {8, 16, 32};
  EXPECT_EQ(largest_rung(ladder, 31.9), 16);
  EXPECT_EQ(largest_rung(ladder, 16), 16);
  EXPECT_EQ(largest_rung(ladder, 1000), 32);
  EXPECT_EQ(largest_rung(ladder, 1), 8);
}

TEST(TimeGuard, ActsAtTheDeadlineOnly) {
  std::atomic<int> calls = 0;
  {
    const TimeGuard guard(std::chrono::hours(1), [&](int) { ++calls; });
  }
  EXPECT_EQ(calls, 0);
  {
    const TimeGuard guard(std::chrono::milliseconds(1), [&](int number) { calls += 1 + number; });
    while (calls == 0) {
      std::this_thread::yield();
    }
  }
  EXPECT_EQ(calls, 1);
}

TEST(TimeGuard, ActsAtASignal) {
  std::atomic<int> number = 0;
  const TimeGuard guard(std::chrono::hours(1), [&](int which) { number = which; });
  std::raise(SIGTERM);
  while (number == 0) {
    std::this_thread::yield();
  }
  EXPECT_EQ(number, SIGTERM);
}

Json result(const std::string& name, Json params, Json metrics) {
  return {{"name", name}, {"params", std::move(params)}, {"metrics", std::move(metrics)}};
}

TEST(Picture, ShowsALinePerAnswerAndWhatIsMissing) {
  const Json p2p = Json::array({result("p2p_latency", {{"bytes", 8}}, {{"median_us", 1.5}}),
                                result("p2p_latency", {{"bytes", 16}}, {{"median_us", 1.7}}),
                                result("p2p_bw", {{"bytes", 8}}, {{"median_GBps", 0.1}}),
                                result("p2p_bw", {{"bytes", 1 << 20}}, {{"median_GBps", 9.5}})});
  const Json noise = Json::array(
      {result("noise", {{"method", "fixed_work"}, {"host", "n1"}}, {{"lost_fraction", nullptr}})});
  const std::string text = picture_text({{"p2p", 1, p2p, ""},
                                         {"noise", 1, noise, ""},
                                         {"io", 0, Json::array(), "left out: no time"},
                                         {"coll", 1, Json::array(), "", false, {}, {"a", "b"}},
                                         failed_answer("ckpt", 1, "disk full", nullptr)});
  EXPECT_THAT(text, HasSubstr("p2p_latency 8 B"));
  EXPECT_THAT(text, HasSubstr("1.5 us"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("16 B")));
  EXPECT_THAT(text, HasSubstr("9.50 GB/s"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("100 MB/s")));
  EXPECT_THAT(text, HasSubstr("noise fixed_work n1"));
  EXPECT_THAT(text, HasSubstr(" -\n"));  // a missing number is not invented
  EXPECT_THAT(text, HasSubstr("# io: left out: no time\n"));
  EXPECT_THAT(text, HasSubstr("# ckpt: failed: disk full\n"));
  EXPECT_THAT(text, HasSubstr("# coll: left out for lack of time or memory: a; b\n"));
}

TEST(Picture, NamesWhatHadNoAnswerAtTheDeadline) {
  const std::vector<std::string> questions = {"gemm", "mem", "io", "step"};
  const std::vector<Answer> all =
      with_unanswered({{"gemm", 1, Json::array(), ""}}, questions, kLate, 58, Json::array());
  ASSERT_EQ(all.size(), 4U);
  EXPECT_TRUE(all[1].has_failed);
  EXPECT_FALSE(all[2].has_failed) << "it was never asked";
  EXPECT_THAT(picture_text(all), HasSubstr("# mem: failed: did not end in time\n"
                                           "# io: left out: mem did not end in time\n"
                                           "# step: left out: mem did not end in time\n"));
  EXPECT_EQ(with_unanswered(all, questions, kLate, 58, Json::array()).size(), 4U)
      << "all have an answer";
}

TEST(Picture, MarksTheRowsOfAQuestionThatDidNotEnd) {
  Json done = result("gemm", {{"precision", "bf16"}, {"m", 512}}, {{"flops_per_s", 3e9}});
  done["metrics"]["wrong"] = 1;  // known before the deadline
  Json rows = Json::array(
      {result("gemm", {{"precision", "bf16"}, {"m", 64}}, {{"flops_per_s", 2e9}, {"wrong", 0}})});
  std::vector<Answer> all =
      with_unanswered({{"gemm", 1, Json::array({done}), ""}}, {"gemm", "mem"}, kLate, 58, rows);
  EXPECT_TRUE(all[1].has_failed);
  EXPECT_EQ(all[1].results.at(0).at("unfinished"), true);
  EXPECT_FALSE(all[0].results.at(0).contains("unfinished"));
  EXPECT_THAT(picture_text(all), testing::AllOf(HasSubstr("3.00 GFLOP/s\n"),
                                                HasSubstr("2.00 GFLOP/s, unfinished\n"
                                                          "# mem: failed: did not end in time")));
  EXPECT_EQ(wrong_question(all), "");
  rows[0]["metrics"]["wrong"] = 2;
  all = with_unanswered({}, {"gemm", "mem"}, kLate, 58, rows);
  EXPECT_EQ(wrong_question(all), "gemm");
}

TEST(MeasuredRows, AreKeptWithTheirHostUntilTheNextQuestion) {
  MeasuredRows rows;
  Json results = Json::array();
  rows.begin({{"host", "n1"}});
  add_row(results, result("noise", {{"method", "fixed_work"}}, {}), &rows);
  add_row(results, result("noise", {{"method", "fixed_time"}}, {}), nullptr);
  ASSERT_EQ(rows.all().size(), 1U);
  EXPECT_EQ(rows.all()[0].at("params"), Json({{"method", "fixed_work"}, {"host", "n1"}}));
  EXPECT_EQ(results.size(), 2U);
  EXPECT_FALSE(results[0].at("params").contains("host")) << "that is added with those of all nodes";
  rows.begin();
  EXPECT_TRUE(rows.all().empty());
}

TEST(Picture, SaysWhatItsNumbersAre) {
  const auto text_of = [](const char* name, Json params, Json metrics) {
    return picture_text({{"", 1, Json::array({result(name, params, metrics)}), ""}});
  };
  EXPECT_THAT(text_of("noise", {{"method", "fixed_work"}}, {{"lost_fraction", 0.327}}),
              HasSubstr(" 0.327 of the time lost\n"));
  EXPECT_THAT(
      text_of("mem_latency", {{"from_numa_node", 0}, {"to_numa_node", 1}}, {{"latency_ns", 85.5}}),
      testing::AllOf(HasSubstr("mem_latency from NUMA node 0 to 1 "), HasSubstr("85.5 ns\n")));
  EXPECT_THAT(text_of("pairs", {{"by", "rank"}}, {{"median_GBps", 37.5}}),
              HasSubstr("pairs by rank "));
}

TEST(Questions, ThoseThatAreNamedAreAsked) {
  const auto all = [] {
    return std::vector<Question>{{"gemm", 1, 1, {}}, {"mem", 1, 1, {}}, {"io", 1, 1, {}}};
  };
  EXPECT_EQ(chosen(all(), {}).size(), 3U);
  const auto some = chosen(all(), {"io", "gemm"});
  ASSERT_EQ(some.size(), 2U);
  EXPECT_EQ(some[0].name, "gemm");
  EXPECT_THROW(chosen(all(), {"coll"}), ConfigError);
}

}  // namespace
}  // namespace trireme
