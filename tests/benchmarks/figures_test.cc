#include "benchmarks/figures.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "benchmarks/busy_watch.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;

TEST(Figures, HaveUnits) {
  EXPECT_EQ(figure_text("bytes_per_s", 9.68384e+08), "968 MB/s");
  EXPECT_EQ(figure_text("pread_bytes_per_s", 3.3e9), "3.30 GB/s");
  EXPECT_EQ(figure_text("flops_per_s", 3.104e11), "310 GFLOP/s");
  EXPECT_EQ(figure_text("tokens_per_s", 12345), "12.3 ktokens/s");
  EXPECT_EQ(figure_text("busbw_GBps", 24.13), "24.1 GB/s");
  EXPECT_EQ(figure_text("memory_bytes", 1536), "1.5 KiB");
  EXPECT_EQ(figure_text("step_ms", 1234.5), "1.23 s");
  EXPECT_EQ(figure_text("transfer_ms", 0.0123), "12.3 us");
  EXPECT_EQ(figure_text("time_us", 999.9), "1 ms");
  EXPECT_EQ(figure_text("seconds", 75), "1m15s");
  EXPECT_EQ(figure_text("fraction_of_ceiling", 0.8512), "0.851");
  EXPECT_EQ(figure_text("rounds", 7), "7");
  EXPECT_EQ(figure_text("ratio", std::nan("")), "-");
}

Json step_result(double fraction) {
  return {{"name", "step"},
          {"params",
           {{"model", "gpt2-124m"},
            {"precision", "bf16"},
            {"a_rather_long_parameter", "with a rather long value"},
            {"micro_batches", 1}}},
          {"metrics", {{"step_ms", 2000.0}, {"fraction_of_ceiling", fraction}}}};
}

TEST(Figures, AResultFitsATerminalAndHasAVerdict) {
  const std::string text = result_text(step_result(0.853));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80U) << line;
    EXPECT_EQ(line.find_first_of("{}\""), std::string::npos) << line;
  }
  EXPECT_THAT(text, HasSubstr("  model gpt2-124m, precision bf16,"));
  EXPECT_THAT(text, HasSubstr("micro batches 1\n"));
  EXPECT_THAT(text, HasSubstr("    step                           2 s\n"));
  EXPECT_THAT(text, HasSubstr("step: 0.85 of the machine's bf16 rate: good\n"));
  Json hostile = step_result(0.45);
  hostile["params"]["model"] = "e\x1b[31m";  // such as the name of a folder
  EXPECT_THAT(result_text(hostile), HasSubstr("  model e\\x1b[31m, precision bf16,"));
  EXPECT_THAT(result_text(step_result(0.45)), HasSubstr("rate: fair\n"));
  EXPECT_THAT(result_text(step_result(0.1)), HasSubstr("rate: low: find out what slows it down\n"));
}

TEST(Figures, TheVerdictOnCollectivesIsThatOfTheLargestSize) {
  const auto entry = [](const char* op, std::int64_t bytes, double rate, double ratio) {
    return Json{{"params", {{"op", op}, {"bytes", bytes}}},
                {"metrics", {{"busbw_GBps", rate}, {"time_us", 5.0}, {"ratio", ratio}}}};
  };
  const Json results = {entry("all_reduce", 16 << 20, 24.1, 3.94), entry("all_reduce", 8, 0.1, 9),
                        entry("barrier", 0, 0, 2)};
  EXPECT_EQ(coll_verdict(results),
            "# all_reduce 16 MiB: 24.1 GB/s, 3.9 times MPI\n"
            "# barrier: 5 us, 2.0 times MPI\n");
  EXPECT_EQ(coll_verdict(Json::array()), "");
}

TEST(Figures, TheVerdictOnTwoRanksNamesTheEnds) {
  const auto entry = [](std::int64_t bytes, const char* metric, double value) {
    return Json{{"params", {{"bytes", bytes}}}, {"metrics", {{metric, value}}}};
  };
  const Json latency = entry(1, "mean_us", 0.52);
  const Json rate = entry(4 << 20, "bandwidth_GBps", 9.1);
  EXPECT_EQ(p2p_verdict({latency, entry(2, "mean_us", 0.6), rate}),
            "# p2p: 520 ns for 1 B, 9.10 GB/s for 4 MiB\n");
  EXPECT_EQ(p2p_verdict(Json::array({rate})), "# p2p: 9.10 GB/s for 4 MiB\n");
  EXPECT_EQ(p2p_verdict(Json::array({latency})), "# p2p: 520 ns for 1 B\n");
}

TEST(BusyWatch, WarnsFromATenthOn) {
  EXPECT_EQ(busy_warning(0), "");
  EXPECT_EQ(busy_warning(0.09), "");
  EXPECT_THAT(busy_warning(0.35), HasSubstr("waited for a core 35% of its time"));
  const BusyWatch watch;
  EXPECT_GE(watch.waiting_part(), 0);
  EXPECT_LE(watch.waiting_part(), 1);
}

}  // namespace
}  // namespace trireme
