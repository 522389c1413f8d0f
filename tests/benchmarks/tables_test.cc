#include "benchmarks/tables.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

Json one_result(const char* name, Json params, Json metrics) {
  return {{"name", name}, {"params", std::move(params)}, {"metrics", std::move(metrics)}};
}

BenchContext context_of(const char* command) {
  BenchContext context;
  context.command = command;
  return context;
}

TEST(ResultsCsv, HasAColumnForEveryKey) {
  const Json results = {
      one_result("a", {{"path", "/x, \"y\""}, {"n", 3}}, {{"time_us", 1.5}, {"ratio", nullptr}}),
      one_result("b", {{"pair", {1, 2}}}, {{"time_us", std::numeric_limits<double>::infinity()}})};
  EXPECT_EQ(results_csv(results),
            "name,path,n,pair,time_us,ratio\n"
            "a,\"/x, \"\"y\"\"\",3,,1.5,\n"
            "b,,,\"[1,2]\",,\n");
}

TEST(ResultsCsv, HasOneColumnForAParameterAndAMetricOfOneName) {
  const Json results = {one_result("gemm", {{"aggregated", 3}}, {{"rate", 5}}),
                        one_result("coll", {{"n", 1}}, {{"aggregated", 7}})};
  EXPECT_EQ(results_csv(results),
            "name,aggregated,n,rate\n"
            "gemm,3,,5\n"
            "coll,7,1,\n");
}

TEST(ResultsOpenMetrics, UsesBaseUnits) {
  const Json results = {
      one_result("coll", {{"op", "all\"\\\n"}, {"root", nullptr}},
                 {{"time_us", 2.0}, {"time_us_low", 1.0}, {"busbw_GBps", 3.0}, {"wrong", 0}}),
      one_result("loader", {{"n", 1}},
                 {{"bytes_per_s", 5.0}, {"memory_bytes", 7}, {"step_ms", 4.0}, {"word", "x"}})};
  BenchContext context = context_of("all");
  context.waited_fraction = 0.25;
  context.time = 12.5;
  context.left_out = {"io"};
  const std::string text = results_openmetrics(results, context);
  for (const char* line :
       {"trireme_bench_time_seconds{command=\"all\"} 12.500\n",
        "trireme_bench_waited_fraction{command=\"all\"} 0.25\n",
        "trireme_bench_left_out{command=\"all\"} 1\n", "trireme_bench_failed{command=\"all\"} 0\n",
        "trireme_bench_coll_time_seconds{op=\"all\\\"\\\\\\n\"} 2e-06\n",
        "# TYPE trireme_bench_coll_time_low_seconds gauge\n",
        "trireme_bench_coll_busbw_bytes_per_second{op=\"all\\\"\\\\\\n\"} 3e+09\n",
        "trireme_bench_coll_wrong{op=\"all\\\"\\\\\\n\"} 0\n",
        "trireme_bench_loader_bytes_per_second{n=\"1\"} 5\n",
        "trireme_bench_loader_memory_bytes{n=\"1\"} 7\n",
        "trireme_bench_loader_step_seconds{n=\"1\"} 0.004\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, Not(HasSubstr("word")));
  EXPECT_TRUE(text.ends_with("\n# EOF\n"));
  context.waited_fraction = std::nan("");
  EXPECT_THAT(results_openmetrics(results, context), Not(HasSubstr("waited_fraction")));
}

TEST(ResultsOpenMetrics, HasEachPairOrTheSlowestOnes) {
  const auto text_of = [](int members) {
    Json result = one_result("pairs", {{"bytes", 8}}, Json::object());
    Json matrix = Json::array();
    Json hosts = Json::array();
    Json ranks = Json::array();
    for (int from = 0; from < members; ++from) {
      ranks.push_back(from);
      hosts.push_back("n" + std::to_string(from));
      Json row = Json::array();
      for (int to = 0; to < members; ++to) {
        row.push_back(from == to ? Json(nullptr) : Json(100 + 100 * from + to));
      }
      matrix.push_back(row);
    }
    result["matrices"] = {{"members", ranks}, {"hosts", hosts}, {"latency_us", matrix}};
    return results_openmetrics(Json::array({result}), context_of("pairs"));
  };
  EXPECT_THAT(text_of(2), HasSubstr("trireme_bench_pairs_pair_latency_seconds{bytes=\"8\",from="
                                    "\"1\",to=\"0\",from_host=\"n1\",to_host=\"n0\"} 0.0002\n"));
  const std::string many = text_of(20);
  EXPECT_EQ(std::count(many.begin(), many.end(), '{'), 36);
  EXPECT_THAT(many, HasSubstr("from=\"19\",to=\"18\""));
  EXPECT_THAT(many, Not(HasSubstr("from=\"0\"")));
}

TEST(Results, ShowWhatReordersText) {
  const Json results = {one_result("a", {{"host", "n\x1b\xE2\x80\xAE\xFF"}}, {{"x", 1}})};
  EXPECT_THAT(results_csv(results), HasSubstr("a,n\\x1b\\u202e\\xff,1\n"));
  EXPECT_THAT(results_openmetrics(results, context_of("a")),
              HasSubstr("host=\"n\\\\x1b\\\\u202e\\\\xff\""));
}

// A label that changes with each run would begin a new time series each time.
TEST(ResultsOpenMetrics, HasOnlyLabelsThatStay) {
  const Json results = {one_result(
      "a", {{"n", 1}, {"rounds", 7}, {"aggregated", 3}, {"huge_page_fraction", 0.5}}, {{"x", 1}})};
  EXPECT_THAT(results_openmetrics(results, context_of("a")),
              HasSubstr("\ntrireme_bench_a_x{n=\"1\"} 1\n"));
}

// Parsers refuse a family whose samples do not follow each other, and values that are no numbers.
TEST(ResultsOpenMetrics, KeepsFamiliesTogether) {
  const Json results = {
      one_result("a", {{"n", 1}}, {{"x", 1}, {"y", 2}}),
      one_result("a", {{"n", 2}}, {{"x", 3}, {"y", 4}}),
      one_result("a", {{"n", 3}},
                 {{"x", std::numeric_limits<double>::quiet_NaN()}, {"y", nullptr}})};
  EXPECT_THAT(results_openmetrics(results, context_of("a")),
              HasSubstr("trireme_bench_a_x{n=\"1\"} 1\ntrireme_bench_a_x{n=\"2\"} 3\n# HELP"));
}

}  // namespace
}  // namespace trireme
