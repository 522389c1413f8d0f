// Tests `trireme trace` with the traces of tests/trace/example.h, whose times were added up by
// hand.
#include "src/app/run/trace_command.h"

#include <array>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/trace/trace_summary.h"
#include "tests/app/command_run.h"
#include "tests/support/temp_folder.h"
#include "tests/trace/example.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

class TraceCommand : public testing::Test {
 protected:
  void write(int rank, const std::string& text) const {
    std::ofstream(trace_file(folder_.path(), rank)) << text;
  }
  // Writes one rank's trace of a step that lasts `step` microseconds, and computes for `compute`.
  void write_step(TraceHeader header, std::int64_t compute, std::int64_t step) const {
    write(header.rank, trace_text(header,
                                  {span_at(SpanKind::compute, "forward", 0, compute),
                                   span_at(SpanKind::step, "step", 0, step, {1, -1, -1})},
                                  {}));
  }
  std::string summary(const std::string& option = "") const {
    std::vector<std::string> words = {"trace", "summary", folder_.path().string()};
    if (!option.empty()) {
      words.push_back(option);
    }
    const CommandRun run =
        run_command_line([](CommandLine& app, int&) { add_trace_command(app); }, words);
    EXPECT_EQ(run.code, 0) << run.err;
    return run.out;
  }

  TempFolder folder_;
};

TEST_F(TraceCommand, TheTableShowsMillisecondsByRankAndPart) {
  write(0, first_text());
  write(1, last_text());
  EXPECT_EQ(summary(),
            "steps 3; 2 ranks, dp 1 x tp 1 x pp 2; clocks agree within 1.5 us\n"
            "milliseconds per step; tp, dp and pp: exposed communication\n"
            "rank     compute      tp      dp      pp  bubble    data   optim   other  t_iter\n"
            "rank 0     0.031   0.003   0.004   0.021   0.025   0.004   0.007   0.005   0.100\n"
            "rank 1     0.024   0.000   0.000   0.008   0.054   0.000   0.009   0.005   0.100\n"
            "mean       0.028   0.002   0.002   0.015   0.040   0.002   0.008   0.005   0.100\n"
            "percent     27.5     1.5     2.0    14.5    39.5     2.0     8.0     5.0   100.0\n"
            "other includes 0.001 ms of checkpoint and 0.000 ms of evaluation\n"
            "stragglers: too few ranks do the same work to compare them\n");
}

TEST_F(TraceCommand, JsonHasTheSameNumbers) {
  write(0, first_text());
  write(1, last_text());
  const auto document = nlohmann::json::parse(summary("--json"));
  EXPECT_EQ(document["schema"], 1);
  EXPECT_EQ(document["steps"], std::vector<int>{3});
  ASSERT_EQ(document["ranks"].size(), 2U);
  const nlohmann::json& first = document["ranks"][0];
  EXPECT_EQ(first["host"], "node0");
  EXPECT_EQ(document["ranks"][1]["pp"], 1);
  const std::array<std::pair<const char*, double>, 12> microseconds = {{{"t_iter_ms", 100},
                                                                        {"compute_ms", 31},
                                                                        {"exposed_tp_ms", 3},
                                                                        {"exposed_dp_ms", 4},
                                                                        {"exposed_pp_ms", 21},
                                                                        {"bubble_ms", 25},
                                                                        {"data_ms", 4},
                                                                        {"optimizer_ms", 7},
                                                                        {"other_ms", 5},
                                                                        {"sum_ms", 100},
                                                                        {"checkpoint_ms", 2},
                                                                        {"evaluation_ms", 0}}};
  for (const auto& [name, value] : microseconds) {
    EXPECT_NEAR(first.at(name), value / 1000, 1e-9) << name;
  }
  EXPECT_NEAR(document["mean"]["bubble_ms"], 0.0395, 1e-9);
  EXPECT_NEAR(first["clock_uncertainty_us"], 1.5, 1e-9);
  EXPECT_EQ(first["dropped_events"], 0);
  EXPECT_TRUE(document["stragglers"].empty());
}

// A number takes at most seven characters, so that the table fits 80 columns.
TEST_F(TraceCommand, LongStepsHaveFewerDecimals) {
  const TraceHeader header = header_of(0, {}, {1, 1, 1});
  const std::vector<std::pair<std::int64_t, const char*>> cases = {{999'899, " 999.899\n"},
                                                                   {999'900, "   999.9\n"},
                                                                   {99'999'900, " 99999.9\n"},
                                                                   {100'000'000, "  100000\n"}};
  for (const auto& [microseconds, cell] : cases) {
    write_step(header, 0, microseconds);
    const std::string table = summary();
    EXPECT_THAT(table, HasSubstr(std::string(cell) + "mean")) << microseconds;
    EXPECT_THAT(table, Not(HasSubstr("other includes")));
  }
}

TEST_F(TraceCommand, SaysHowMuchOfTheTraceIsMissing) {
  TraceHeader header = header_of(0, {0, 0, 0}, {2, 1, 1});
  write_step(header, 10, 100);
  EXPECT_THAT(run_command_line([](CommandLine& app, int&) { add_trace_command(app); },
                               {"trace", "summary", folder_.path().string()})
                  .err,
              HasSubstr("rank 1 of 2 is missing"));
  header = header_of(1, {1, 0, 0}, {2, 1, 1});
  header.dropped = 7;
  header.clock_uncertainty_ns = 2600;
  write_step(header, 10, 100);
  EXPECT_THAT(summary(),
              AllOf(HasSubstr("clocks agree within 2.6 us\n"),
                    HasSubstr("the trace is incomplete: up to 7 events per rank did not fit")));
}

// There are four replicas. Rank 2 computes for 3.9 ms instead of 3 ms.
TEST_F(TraceCommand, NamesStragglersAndTheirPeers) {
  const TracePlace grid{4, 1, 1};
  for (int rank = 0; rank < 4; ++rank) {
    write_step(header_of(rank, {rank, 0, 0}, grid), 3000 + rank, 5000);
  }
  EXPECT_THAT(summary(), HasSubstr("no stragglers\n"));
  write_step(header_of(2, {2, 0, 0}, grid), 3903, 5000);
  const std::string table = summary();
  EXPECT_THAT(table, Not(HasSubstr("no stragglers")));
  EXPECT_THAT(table.substr(table.find("straggler")),
              MatchesRegex("straggler: rank 2 on node2: computes 3.9 ms, 1.3 times its peers "
                           "\\(z-score [0-9.]+\\)\n"));
  const auto document = nlohmann::json::parse(summary("--json"));
  EXPECT_EQ(document["stragglers"], nlohmann::json::parse(R"([{"rank": 2, "host": "node2"}])"));
  EXPECT_NEAR(document["ranks"][2]["compute_median_ms"], 3.903, 1e-9);
  EXPECT_NEAR(document["ranks"][2]["slowness"], 3903.0 / 3001, 1e-6);
  EXPECT_EQ(document["ranks"][2]["straggler"], true);
  EXPECT_EQ(document["ranks"][1]["straggler"], false);
  EXPECT_GT(document["ranks"][2]["score"], kStragglerScore);
}

}  // namespace
}  // namespace trireme
