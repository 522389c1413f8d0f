#include "src/trace/span_log.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

TEST(SpanLog, KnowsItsKindsByName) {
  for (const SpanKind kind : {SpanKind::step, SpanKind::compute, SpanKind::data, SpanKind::tensor,
                              SpanKind::replicas, SpanKind::stages, SpanKind::send, SpanKind::meet,
                              SpanKind::optimizer, SpanKind::checkpoint, SpanKind::evaluation}) {
    EXPECT_EQ(parse_span_kind(name_of(kind)), kind);
  }
  EXPECT_EQ(name_of(SpanKind::evaluation), "evaluation");
  EXPECT_EQ(parse_span_kind("operation"), std::nullopt);
}

TEST(SpanLog, NotesSpansFromTheInsideOutWhileItRecords) {
  SpanLog log(10);
  { const SpanTimer before(&log, SpanKind::data, "before"); }
  log.record(true);
  {
    const SpanTimer outer(&log, SpanKind::compute, "outer", {3, 1, -1});
    SpanTimer inner(&log, SpanKind::data, "inner");
    inner.end();
    inner.end();
  }
  log.record(false);
  { const SpanTimer after(nullptr, SpanKind::data, "nowhere"); }
  ASSERT_EQ(log.spans().size(), 2U);
  EXPECT_EQ(log.spans()[0].name, "inner");
  EXPECT_EQ(log.spans()[1].detail.number, 3);
  EXPECT_LE(log.spans()[1].start_ns, log.spans()[0].start_ns);
  EXPECT_GE(log.spans()[1].end_ns, log.spans()[0].end_ns);
}

TEST(SpanLog, CountsWhatDoesNotFit) {
  SpanLog log(2);
  log.record(true);
  for (int i = 0; i < 5; ++i) {
    log.add({});
  }
  EXPECT_EQ(log.spans().size(), 2U);
  EXPECT_EQ(log.dropped(), 3);
  log.rewind(1);
  EXPECT_EQ(log.spans().size(), 1U);
}

TEST(SpanLog, TellsOfEverySpanOfCompute) {
  SpanLog log(1);
  int reported = 0;
  log.call_after_compute([&] { ++reported; });
  log.record(true);
  log.add({SpanKind::compute, "", {}, 0, 0});
  log.add({SpanKind::data, "", {}, 0, 0});
  log.add({SpanKind::compute, "", {}, 0, 0});
  EXPECT_EQ(reported, 2);
}

}  // namespace
}  // namespace trireme
