#include "src/trace/trace_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/json_fields.h"
#include "tests/support/message_of.h"
#include "tests/trace/example.h"

namespace trireme {
namespace {

using testing::HasSubstr;

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

TEST(TraceFile, ComesBackAsItWasWritten) {
  const RankTrace trace = parse_trace(first_text());
  EXPECT_EQ(trace.header.id, 77);
  EXPECT_EQ(trace.header.ranks, 2);
  EXPECT_EQ(trace.header.host, "node0");
  EXPECT_EQ(trace.header.device, "simulated CUDA device");
  EXPECT_EQ(trace.header.grid, (TracePlace{1, 1, 2}));
  EXPECT_EQ(trace.header.clock_offset_ns, -1234567);
  EXPECT_EQ(trace.header.clock_uncertainty_ns, 1500);
  ASSERT_EQ(trace.spans.size(), first_stage().size());
  EXPECT_EQ(trace.spans[0].kind, SpanKind::step);
  EXPECT_EQ(trace.spans[1].name, "forward");
  EXPECT_EQ(trace.spans[1].start_ns, 1000 * kMicro);
  EXPECT_EQ(trace.spans[1].end_ns, 1020 * kMicro);
  EXPECT_EQ(trace.spans[1].detail.number, 0);
  EXPECT_EQ(trace.spans[1].detail.stage, -1);
  EXPECT_EQ(trace.spans[2].kind, SpanKind::data);
}

TEST(TraceFile, KeepsNanosecondsAndTimesBeforeTheStart) {
  const std::string text = trace_text(header_of(0, {}, {1, 1, 1}),
                                      {{SpanKind::step, "step", {1, -1, -1}, -1001, 999}}, {});
  EXPECT_THAT(text, HasSubstr("\"ts\":-1.001,\"dur\":2.000"));
  const RankTrace trace = parse_trace(text);
  EXPECT_EQ(trace.spans.at(0).start_ns, -1001);
  EXPECT_EQ(trace.spans.at(0).end_ns, 999);
}

TEST(TraceFile, OuterSpansComeFirstAlsoWhereTimesAreEqual) {
  const RankTrace trace = parse_trace(trace_text(
      header_of(0, {}, {1, 1, 1}),
      {span_at(SpanKind::data, "tokens", 5, 9), span_at(SpanKind::compute, "forward", 5, 9),
       span_at(SpanKind::step, "step", 5, 9)},
      {}));
  EXPECT_EQ(trace.spans.at(0).kind, SpanKind::step);
  EXPECT_EQ(trace.spans.at(1).kind, SpanKind::compute);
  EXPECT_EQ(trace.spans.at(2).kind, SpanKind::data);
}

TEST(TraceFile, OperationsOfOneLaneFollowEachOther) {
  const nlohmann::json json = parse_json(first_text());
  std::map<int, double> ends;
  int operations = 0;
  for (const nlohmann::json& event : json["traceEvents"]) {
    if (event["ph"] == "X" && event["cat"] == "operation") {
      ++operations;
      double& end = ends.try_emplace(event["tid"], 0).first->second;
      EXPECT_GE(event["ts"].get<double>(), end);
      end = event["ts"].get<double>() + event["dur"].get<double>();
    }
  }
  EXPECT_EQ(operations, 3);
  EXPECT_EQ(ends.size(), 2U);
  EXPECT_FALSE(ends.contains(0));
}

TEST(TraceFile, OlderFilesNameNoDevice) {
  const std::string text = replaced(first_text(), "\"device\":\"simulated CUDA device\",", "");
  EXPECT_EQ(parse_trace(text).header.device, "");
  EXPECT_THROW(parse_trace(replaced(first_text(), "\"simulated CUDA device\"", "7")), DataError);
}

TEST(TraceFile, AnyHostNameIsJson) {
  TraceHeader header = header_of(0, {}, {1, 1, 1});
  header.host = "a\"b\\\n\xff";
  EXPECT_THAT(parse_trace(trace_text(header, {}, {})).header.host, HasSubstr("a\"b\\\n"));
}

struct Damage {
  const char* what;
  const char* by;
  const char* says;
};

TEST(TraceFile, RefusesWhatIsNoTraceAndSaysWhere) {
  const std::string text = first_text();
  for (const Damage& damage :
       {Damage{"\"schema\":1", "\"schema\":2", "schema"},
        {"\"schema\":1", "\"schema\":\"1\"", "schema"},
        {"\"rank\":0", "\"rank\":2", "rank"},
        {"\"ranks\":2", "\"ranks\":99999999999", "ranks"},
        {"\"ranks\":2", "\"ranks\":3", "is not the number of ranks, 3"},
        {"\"host\":\"node0\"", "\"host\":7", "host"},
        {"\"id\":77", "\"id\":77,\"id\":77", "twice"},
        {"\"place\":{", "\"place\":[1],\"x\":{", "place"},
        {"\"grid\":{\"dp\":1,", "\"grid\":{\"dp\":16777216,", "is not the number of ranks, 2"},
        {"\"uncertainty_us\":1.5", "\"uncertainty_us\":-1.5", "uncertainty_us"},
        {"\"offset_us\":-1234.567", "\"offset_us\":1e300", "offset_us"},
        {"\"traceEvents\":[", "\"traceEvents\":7,\"x\":[", "traceEvents"},
        {"\"traceEvents\":[", "\"traceEvents\":[3,", "event 0"},
        {"\"cat\":\"data\"", "\"cat\":\"date\"", "unknown span kind 'date'"},
        {"\"cat\":\"data\"", "\"cat\":null", "cat"},
        {"\"ts\":1000.000", "\"ts\":\"now\"", "event 2: field 'ts'"},
        {"\"ts\":1000.000", "\"ts\":1e99", "ts"},
        {"\"ts\":1000.000", "\"ts\":-1e15", "ts"},
        {"\"dur\":100.000", "\"dur\":-1", "dur"},
        {"\"number\":3", "\"number\":1152921504606846977", "number"},
        {"\"number\":3", "\"number\":-3", "number"},
        {"\"stage\":1", "\"stage\":4294967297", "stage"},
        {"\"ph\":\"X\"", "\"ph\":\"B\"", "ph"},
        {"\"pid\":0,\"tid\":0,\"ts\"", "\"pid\":1,\"tid\":0,\"ts\"", "pid"}}) {
    EXPECT_THAT(
        message_of<DataError>([&] { (void)parse_trace(replaced(text, damage.what, damage.by)); }),
        HasSubstr(damage.says))
        << damage.by;
  }
}

TEST(TraceFile, NoTruncatedFileIsATrace) {
  const std::string text = first_text();
  for (std::size_t size = 0; size + 2 < text.size(); size += 7) {
    EXPECT_THROW((void)parse_trace(std::string_view(text).substr(0, size)), DataError) << size;
  }
}

// Does what the fuzz target does, with the same few thousand mutations in every run.
TEST(TraceFile, MutationsAreParsedOrRefused) {
  const std::string text = first_text();
  std::uint64_t state = 12345;
  const auto random = [&](std::size_t below) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::size_t>(state >> 33) % below;
  };
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string mutant = text;
    for (std::size_t changes = 1 + random(3); changes > 0; --changes) {
      mutant[random(mutant.size())] = static_cast<char>(random(256));
    }
    try {
      (void)parse_trace(mutant);
    } catch (const DataError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace trireme
