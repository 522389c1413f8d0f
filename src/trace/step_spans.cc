#include "src/trace/step_spans.h"

#include <fmt/core.h>

#include "src/base/error.h"

namespace trireme {
namespace {

bool covers(SpanKind kind) { return kind == SpanKind::evaluation || kind == SpanKind::checkpoint; }

// Visits the spans from the outside in. `open_` holds the spans that contain the next one.
class Walk {
 public:
  explicit Walk(const RankTrace& trace) {
    for (const Span& span : trace.spans) {
      enter(span);
    }
  }

  std::vector<StepSpans> steps;

 private:
  struct Open {
    const Span* span;
    SpanKind kind;      // the kind that its time counts as
    std::size_t index;  // index of its OwnTime in the step
  };

  void enter(const Span& span) {
    while (!open_.empty() && open_.back().span->end_ns <= span.start_ns) {
      open_.pop_back();
    }
    if (open_.empty()) {
      if (span.kind != SpanKind::step) {
        return;
      }
      steps.push_back({&span, {}});
      push(span, span.kind);
      return;
    }
    const Open& outer = open_.back();
    if (span.end_ns > outer.span->end_ns || span.kind == SpanKind::step) {
      throw DataError(fmt::format("spans overlap: '{}' at {} us and '{}' at {} us",
                                  outer.span->name,
                                  static_cast<double>(outer.span->start_ns) / 1000, span.name,
                                  static_cast<double>(span.start_ns) / 1000));
    }
    steps.back().times[outer.index].ns -= span.end_ns - span.start_ns;
    push(span, covers(outer.kind) ? outer.kind : span.kind);
  }

  void push(const Span& span, SpanKind kind) {
    std::vector<OwnTime>& times = steps.back().times;
    open_.push_back({&span, kind, times.size()});
    times.push_back({&span, kind, span.end_ns - span.start_ns});
  }

  std::vector<Open> open_;
};

}  // namespace

std::vector<StepSpans> spans_by_step(const RankTrace& trace) {
  return std::move(Walk(trace).steps);
}

}  // namespace trireme
