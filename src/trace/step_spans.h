// The spans of a rank by traced step, each with the time that it has for itself. Pure functions.
#pragma once

#include <vector>

#include "src/trace/trace_file.h"

namespace trireme {

struct OwnTime {
  const Span* span = nullptr;  // of the trace
  // Its own; within an evaluation or a checkpoint that one's.
  SpanKind kind = SpanKind::step;
  std::int64_t ns = 0;  // in the span and in none inside it
};

struct StepSpans {
  const Span* step = nullptr;
  std::vector<OwnTime> times;  // the step's own first
};

// In their order. What stands outside of all steps is passed over. DataError for spans that overlap
// without one being inside the other. The trace outlives the result.
std::vector<StepSpans> spans_by_step(const RankTrace& trace);

}  // namespace trireme
