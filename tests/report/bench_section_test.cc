#include "src/report/bench_section.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

Json document(const Json& results) {
  return {{"schema", 2},
          {"command", "coll"},
          {"program", {{"version", "1"}}},
          {"host", {{"name", "n<1>"}}},
          {"ranks", Json::array({1, 2})},
          {"time", 1e9},
          {"waited_fraction", 0.25},
          {"results", results}};
}

std::string page(const Json& results) {
  return to_html({"t", {}, {bench_section(document(results).dump(), "a.json")}});
}

Json coll(const char* op, int bytes, double busbw) {
  return {{"name", "coll"},
          {"params", {{"op", op}, {"bytes", bytes}}},
          {"metrics",
           {{"busbw_GBps", busbw}, {"time_us", 5}, {"time_us_low", 4}, {"time_us_high", 6}}}};
}

TEST(BenchSection, DrawsCollectivesOverTheirSizes) {
  const std::string text = page({coll("all_reduce", 1024, 1), coll("all_reduce", 4096, 2.5)});
  EXPECT_THAT(text, HasSubstr("Benchmark coll: a.json"));
  EXPECT_THAT(text, HasSubstr("all_reduce: at most 2.5"));
  EXPECT_THAT(text, HasSubstr("n&lt;1&gt;"));
  EXPECT_THAT(text, HasSubstr("waited for a core for 25 % of the time"));
}

TEST(BenchSection, ShowsWhatAllRowsShareAndWhatWasLeftOut) {
  Json document = ::trireme::document({coll("all_reduce", 1024, 1), coll("all_reduce", 4096, 2.5)});
  document["left_out"] = {"coll bytes=8"};
  document["results"][0]["metrics"]["bytes_per_s"] = 1722183910.0;
  const std::string text = to_html({"t", {}, {bench_section(document.dump(), "a.json")}});
  EXPECT_THAT(text, HasSubstr("In all rows: op = all_reduce."));
  EXPECT_THAT(text, HasSubstr("Not measured: coll bytes=8"));
  EXPECT_THAT(text, HasSubstr("1.72 GB/s"));
}

TEST(BenchSection, SaysWhichQuestionsHaveFailed) {
  Json document = ::trireme::document(Json::array());
  document["command"] = "all";
  document["waited_fraction"] = nullptr;
  document["failed"] = {{{"question", "gemm"}, {"reason", "did not end in time"}}};
  document["left_out"] = {"mem"};
  const std::string text = to_html({"t", {}, {bench_section(document.dump(), "a.json")}});
  EXPECT_THAT(text, HasSubstr("gemm has failed: did not end in time"));
  EXPECT_THAT(text, HasSubstr("Not measured: mem"));
  EXPECT_THAT(text, Not(HasSubstr("waited for a core")));
}

TEST(BenchSection, SaysWhichRowsAreThoseOfAnUnfinishedQuestion) {
  Json row = coll("all_reduce", 1024, 1);
  row["unfinished"] = true;
  Json document = ::trireme::document(Json::array({row}));
  document["failed"] = {{{"question", "coll"}, {"reason", "did not end in time"}}};
  EXPECT_THAT(to_html({"t", {}, {bench_section(document.dump(), "a.json")}}),
              HasSubstr("Measured before the deadline, with other rows missing: coll"));
}

TEST(BenchSection, RefusesSamplesThatAreTexts) {
  Json result = coll("all_reduce", 1024, 1);
  result["samples"] = {{"time_us", {{"values", {1.0, "x"}}}}};
  EXPECT_THAT(message_of<DataError>([&] { (void)page(Json::array({result})); }),
              HasSubstr("a value of time_us is neither a number nor null"));
  result["samples"] = {{"time_us", {{"median", 1.0}}}};
  EXPECT_THAT(message_of<DataError>([&] { (void)page(Json::array({result})); }),
              HasSubstr("values"));
}

TEST(BenchSection, RefusesATimeThatIsNoNumber) {
  Json document = ::trireme::document(Json::array({coll("all_reduce", 1024, 1)}));
  document["time"] = "x";
  EXPECT_THAT(message_of<DataError>([&] { (void)bench_section(document.dump(), "a.json"); }),
              HasSubstr("field 'time' is not a finite number"));
}

TEST(BenchSection, DrawsScalingWithTheIdealLineAndIntervals) {
  const auto step = [](int ranks, double rate) -> Json {
    return {{"name", "step"},
            {"params", {{"model", "m"}, {"ranks", ranks}}},
            {"metrics", {{"tokens_per_s", rate}}},
            {"samples",
             {{"step_ms", {{"values", {10, 8, 20}}, {"median", 10}, {"low", 8}, {"high", 20}}}}}};
  };
  const std::string text = page({step(1, 100), step(4, 300)});
  EXPECT_THAT(text, HasSubstr("m ideal"));
  EXPECT_THAT(text, HasSubstr("75.0 %"));
  EXPECT_THAT(text, HasSubstr(">150<")) << "half the rate for the longest time";
  EXPECT_THAT(text, HasSubstr(">375<"));
}

TEST(BenchSection, DrawsAScalingStudy) {
  int knee = 4;
  const auto scale = [&](int nodes, double speedup, double efficiency) -> Json {
    return {{"name", "scale"},
            {"params", {{"scaling", "strong"}, {"nodes", nodes}}},
            {"metrics",
             {{"speedup", speedup},
              {"efficiency", efficiency},
              {"efficiency_low", efficiency * 0.9},
              {"efficiency_high", efficiency * 1.1},
              {"compute_ms", 80 / nodes},
              {"communication_ms", 5},
              {"knee", nodes == knee}}}};
  };
  const std::string text = page({scale(4, 3, 0.75), scale(1, 1, 1), scale(2, 1.8, 0.9)});
  for (const char* const words :
       {"Speedup, strong scaling", "over 1 to 4 nodes", "3 at last, 0.75 of the ideal", ">knee<",
        "The knee was not reached: 4 nodes", "Where the time of a step goes, strong scaling",
        ">communication<", ">ideal<"}) {
    EXPECT_THAT(text, HasSubstr(words)) << words;
  }
  knee = 2;
  EXPECT_THAT(page({scale(4, 3, 0.75), scale(1, 1, 1), scale(2, 1.8, 0.9)}),
              HasSubstr("The knee is at 2 nodes, with an efficiency of 0.9: 4 nodes have 0.75."));
  (void)page(Json::array({{{"name", "scale"},
                           {"params", {{"scaling", 7}, {"nodes", "x"}}},
                           {"metrics", {{"speedup", nullptr}, {"knee", 3}}}}}));
}

TEST(BenchSection, DrawsPairsAsAHeatMap) {
  const Json pairs = {
      {"name", "pairs"},
      {"params", {{"by", "rank"}}},
      {"metrics", {{"median_GBps", 5}, {"outliers", {{{"from", 7000}, {"to", 1}}}}}},
      {"matrices",
       {{"members", {0, 1}},
        {"hosts", {"a", "<b>"}},
        {"bandwidth_GBps", {{nullptr, 5.5}, {4.5, nullptr}}},
        {"latency_us", {{nullptr, 1}, {2, nullptr}}}}}};
  const std::string text = page(Json::array({pairs}));
  EXPECT_THAT(text, HasSubstr("Bandwidth between pairs"));
  EXPECT_THAT(text, HasSubstr("1 &lt;b&gt;"));
  EXPECT_THAT(text, Not(HasSubstr("7000")));  // a list of objects is no text for a cell
  Json torn = pairs;
  torn["matrices"]["bandwidth_GBps"] = {{1}};
  EXPECT_THROW(page(Json::array({torn})), DataError);
}

TEST(BenchSection, ResultsThatItDoesNotKnowAreATable) {
  const std::string text = page(Json::array(
      {{{"name", "future"}, {"params", {{"a", {1, 2}}}}, {"metrics", {{"b_us", 3.5}}}}}));
  EXPECT_THAT(text, HasSubstr("Results: future"));
  EXPECT_THAT(text, HasSubstr(">3.5<"));
}

TEST(BenchSection, SaysWhatIsWrongWithAFile) {
  EXPECT_TRUE(looks_like_bench(document(Json::array()).dump()));
  EXPECT_FALSE(looks_like_bench("{\"code\": 1}"));
  EXPECT_THAT(message_of<DataError>([] { bench_section("{\"schema\": 2, \"comm", "a"); }),
              HasSubstr("JSON"));
  Json other = document(Json::array());
  other["schema"] = 1;
  EXPECT_THAT(message_of<DataError>([&] { bench_section(other.dump(), "a"); }),
              HasSubstr("its schema is version 1, and this program reads version 2"));
  for (const Json& result : {Json(7), Json({{"name", "x"}}), Json({{"name", 5}, {"params", {}}}),
                             Json({{"name", "x"}, {"params", 1}, {"metrics", 2}})}) {
    EXPECT_THROW(bench_section(document(Json::array({result})).dump(), "a"), DataError) << result;
  }
}

TEST(BenchSection, OddNumbersDoNoHarm) {
  (void)page({coll("x", 0, 1), coll("x", -5, 1), coll("x", 8, 1e308), coll("x", 16, -1e308)});
  (void)page(
      Json::array({{{"name", "coll"}, {"params", Json::object()}, {"metrics", Json::object()}}}));
}

}  // namespace
}  // namespace trireme
