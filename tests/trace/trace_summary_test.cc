#include "src/trace/trace_summary.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/trace/step_spans.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"
#include "tests/trace/example.h"

namespace trireme {
namespace {

using testing::HasSubstr;

std::vector<RankTrace> example() {
  std::vector<RankTrace> traces;
  traces.push_back(parse_trace(first_text()));
  traces.push_back(parse_trace(last_text()));
  return traces;
}

RankTrace trace_of(const TraceHeader& header, std::vector<Span> spans) {
  return parse_trace(trace_text(header, std::move(spans), {}));
}

// Expects these times in microseconds, in the order of StepPart.
void expect_parts(const StepTimes& times, const std::array<double, kStepParts>& parts) {
  for (std::size_t part = 0; part < kStepParts; ++part) {
    EXPECT_NEAR(1e6 * times.parts[part], parts[part], 1e-6) << name_of(static_cast<StepPart>(part));
  }
}

TEST(TraceSummary, SharesOutAStepByHand) {
  const TraceSummary summary = summarize(example());
  ASSERT_EQ(summary.ranks.size(), 2U);
  EXPECT_EQ(summary.steps, std::vector<std::int64_t>{3});
  expect_parts(summary.ranks[0].mean, {31, 3, 4, 21, 25, 4, 7, 5});
  expect_parts(summary.ranks[1].mean, {24, 0, 0, 8, 54, 0, 9, 5});
  expect_parts(summary.mean, {27.5, 1.5, 2, 14.5, 39.5, 2, 8, 5});
  EXPECT_NEAR(1e6 * summary.ranks[0].mean.checkpoint, 2, 1e-6);
  for (const RankSummary& rank : summary.ranks) {
    EXPECT_NEAR(1e6 * rank.mean.step, 100, 1e-6);
    EXPECT_NEAR(rank.mean.sum(), rank.mean.step, 0.01 * rank.mean.step);
  }
}

// From the arrival of the last stage of the rank's own pipeline on, replicas wait for each other.
TEST(TraceSummary, TellsStagesFromReplicasWhereAllMeet) {
  std::vector<RankTrace> traces;
  for (int rank = 0; rank < 4; ++rank) {
    const TraceHeader header = header_of(rank, {rank % 2, 0, rank / 2}, {2, 1, 2});
    const std::int64_t came = 10 * (rank + 1);
    traces.push_back(trace_of(header, {span_at(SpanKind::meet, "losses", came, 50),
                                       span_at(SpanKind::step, "step", 0, 50, {1, -1, -1})}));
  }
  const TraceSummary summary = summarize(traces);
  // Rank 2 is the other stage of rank 0's pipeline and arrives at 30.
  expect_parts(summary.ranks[0].mean, {0, 0, 20, 0, 20, 0, 0, 10});
  expect_parts(summary.ranks[1].mean, {0, 0, 10, 0, 20, 0, 0, 20});
  expect_parts(summary.ranks[2].mean, {0, 0, 20, 0, 0, 0, 0, 30});
  expect_parts(summary.ranks[3].mean, {0, 0, 10, 0, 0, 0, 0, 40});
}

TEST(TraceSummary, WhatAnEvaluationDoesIsEvaluation) {
  std::vector<RankTrace> traces;
  traces.push_back(
      trace_of(header_of(0, {}, {1, 1, 1}), {span_at(SpanKind::compute, "forward", 10, 20),
                                             span_at(SpanKind::stages, "activation", 22, 25),
                                             span_at(SpanKind::evaluation, "evaluation", 5, 30),
                                             span_at(SpanKind::step, "step", 0, 40, {1, -1, -1})}));
  const StepTimes times = summarize(traces).ranks.at(0).mean;
  EXPECT_NEAR(1e6 * times.evaluation, 25, 1e-6);
  expect_parts(times, {0, 0, 0, 0, 0, 0, 0, 40});
}

TEST(TraceSummary, TakesTheStepsThatAllRanksHave) {
  std::vector<RankTrace> traces;
  for (int rank = 0; rank < 2; ++rank) {
    const TraceHeader header = header_of(rank, {rank, 0, 0}, {2, 1, 1});
    traces.push_back(trace_of(header, {span_at(SpanKind::step, "step", 0, 10, {1 + rank, -1, -1}),
                                       span_at(SpanKind::step, "step", 10, 20, {2 + rank, -1, -1}),
                                       span_at(SpanKind::data, "tokens", 20, 50)}));
  }
  const TraceSummary summary = summarize(traces);
  EXPECT_EQ(summary.steps, std::vector<std::int64_t>{2});
  EXPECT_NEAR(1e6 * summary.mean.step, 10, 1e-6);
  traces.pop_back();
  traces.push_back(trace_of(header_of(1, {1, 0, 0}, {2, 1, 1}), {}));
  EXPECT_THAT(message_of<DataError>([&] { (void)summarize(traces); }), HasSubstr("in common"));
}

TEST(TraceSummary, RefusesSpansThatOverlapAndStepsThatStandThereTwice) {
  const auto refused = [](std::vector<Span> spans) {
    std::vector<RankTrace> traces;
    traces.push_back(trace_of(header_of(0, {}, {1, 1, 1}), std::move(spans)));
    return message_of<DataError>([&] { (void)summarize(traces); });
  };
  const Span step = span_at(SpanKind::step, "step", 0, 100, {1, -1, -1});
  EXPECT_THAT(refused({span_at(SpanKind::compute, "forward", 0, 20),
                       span_at(SpanKind::data, "tokens", 10, 30), step}),
              HasSubstr("'forward' at 0 us and 'tokens' at 10 us"));
  EXPECT_THAT(refused({span_at(SpanKind::compute, "forward", 90, 101), step}),
              HasSubstr("overlap"));
  EXPECT_THAT(refused({span_at(SpanKind::step, "step", 10, 20, {2, -1, -1}), step}),
              HasSubstr("overlap"));
  EXPECT_THAT(refused({step, span_at(SpanKind::step, "step", 100, 120, {1, -1, -1})}),
              HasSubstr("twice"));
  EXPECT_THAT(refused({span_at(SpanKind::step, "step", 100, 120)}), HasSubstr("no number"));
}

// Stages have different work, so ranks are compared within their stage.
TEST(TraceSummary, NamesTheRankThatComputesSlower) {
  const TracePlace grid{4, 1, 2};
  std::vector<RankTrace> traces;
  for (int rank = 0; rank < 8; ++rank) {
    const TraceHeader header = header_of(rank, {rank % 4, 0, rank / 4}, grid);
    const std::int64_t usual = rank < 4 ? 1000 : 3000;
    const std::int64_t own = usual + rank + (rank == 6 ? 900 : 0);
    traces.push_back(trace_of(header, {span_at(SpanKind::compute, "forward", 0, own),
                                       span_at(SpanKind::replicas, "gradients", own, 5000),
                                       span_at(SpanKind::step, "step", 0, 5000, {1, -1, -1})}));
  }
  const TraceSummary summary = summarize(traces);
  for (const RankSummary& rank : summary.ranks) {
    EXPECT_EQ(rank.slowness.straggles, rank.header.rank == 6) << rank.header.rank;
  }
  EXPECT_NEAR(summary.ranks[6].slowness.of_peers, 1.3, 0.01);
}

class TraceFolder : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path() / name) << text;
  }
  std::string refused() const {
    return message_of<DataError>([&] { (void)read_traces(folder_.path()); });
  }
  TempFolder folder_;
};

TEST_F(TraceFolder, IsReadInTheOrderOfRanks) {
  write("rank-00001.json", last_text());
  write("rank-00000.json", first_text());
  write("notes.txt", "not a trace");
  const std::vector<RankTrace> traces = read_traces(folder_.path());
  ASSERT_EQ(traces.size(), 2U);
  EXPECT_EQ(traces[0].header.rank, 0);
  EXPECT_EQ(trace_file(folder_.path(), 1), folder_.path() / "rank-00001.json");
  std::filesystem::create_directory(folder_.path() / "trace");
  EXPECT_THROW((void)read_traces(folder_.path()), NotFound);
}

TEST_F(TraceFolder, SaysWhichFileIsMissingOrDamagedOrForeign) {
  EXPECT_THROW((void)read_traces(folder_.path()), NotFound);
  EXPECT_THROW((void)read_traces(folder_.path() / "nowhere"), NotFound);
  write("rank-00001.json", last_text());
  EXPECT_THAT(refused(), HasSubstr("rank 0 of 2 is missing"));
  write("rank-00000.json", first_text().substr(0, 500));
  EXPECT_THAT(refused(), HasSubstr("rank-00000.json: not JSON"));
  write("rank-00000.json", last_text());
  EXPECT_THAT(refused(), HasSubstr("rank 0 of 2 is missing"));
  TraceHeader other = header_of(0, {}, {1, 1, 2});
  other.id = 78;
  write("rank-00000.json", trace_text(other, first_stage(), {}));
  EXPECT_THAT(refused(), HasSubstr("rank-00001.json belongs to a different trace"));
  write("rank-00000.json", first_text());
  write("rank-00002.json", last_text());
  EXPECT_THAT(refused(), HasSubstr("more trace files than ranks"));
}

}  // namespace
}  // namespace trireme
