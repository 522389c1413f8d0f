#include "src/trace/span_log.h"

#include <algorithm>
#include <array>

namespace trireme {
namespace {

// The names, indexed by SpanKind.
constexpr std::array<std::string_view, 11> kNames = {"step",      "compute",    "data",      "tp",
                                                     "dp",        "pp",         "send",      "meet",
                                                     "optimizer", "checkpoint", "evaluation"};

}  // namespace

std::string_view name_of(SpanKind kind) { return kNames.at(static_cast<std::size_t>(kind)); }

std::optional<SpanKind> parse_span_kind(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) {
    return std::nullopt;
  }
  return static_cast<SpanKind>(found - kNames.begin());
}

void sort_by_nesting(std::vector<Span>& spans) {
  std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
  });
}

std::int64_t steady_nanoseconds() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void SpanLog::record(bool on) {
  recording_ = on;
  if (on) {
    spans_.reserve(most_);  // so that no allocation happens during a step
  }
}

void SpanLog::add(const Span& span) {
  if (spans_.size() < most_) {
    spans_.push_back(span);
  } else {
    ++dropped_;
  }
  if (span.kind == SpanKind::compute && after_compute_) {
    after_compute_();
  }
}

}  // namespace trireme
