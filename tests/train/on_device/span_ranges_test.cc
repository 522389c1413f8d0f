#include <gtest/gtest.h>

#include "src/device/sim/ranges.h"
#include "src/trace/span_log.h"

namespace trireme {
namespace {

using Names = std::vector<std::string>;

TEST(SpanTimer, IsARangeForProfilersWithOrWithoutALog) {
  SpanLog log(10);
  log.record(true);
  {
    const SpanTimer outer(&log, SpanKind::step, "outer");
    {
      SpanTimer inner(nullptr, SpanKind::compute, "inner");
      EXPECT_EQ(sim::open_ranges(), (Names{"outer", "inner"}));
      inner.end();
      EXPECT_EQ(sim::open_ranges(), Names{"outer"});
    }
    EXPECT_EQ(sim::open_ranges(), Names{"outer"});
  }
  EXPECT_EQ(sim::open_ranges(), Names{});
}

}  // namespace
}  // namespace trireme
