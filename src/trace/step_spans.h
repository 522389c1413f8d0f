// Groups the spans of a rank by traced step and computes the time that each has for itself. Pure
// functions.
#pragma once

#include <vector>

#include "src/trace/trace_file.h"

namespace trireme {

// An OwnTime is the time of a span outside all spans within it.
struct OwnTime {
  const Span* span = nullptr;  // belongs to the trace
  // A span within one of kind checkpoint or evaluation counts as that kind.
  SpanKind kind = SpanKind::step;
  std::int64_t ns = 0;  // time in the span but in no span within it
};

struct StepSpans {
  const Span* step = nullptr;
  std::vector<OwnTime> times;  // the step's own time is first
};

// Returns the steps in order and ignores spans outside of steps. Throws DataError if spans overlap
// without one containing the other. The trace must outlive the result.
std::vector<StepSpans> spans_by_step(const RankTrace& trace);

}  // namespace trireme
