#include "src/trace/span_log.h"

#include <algorithm>
#include <array>
#include <cmath>

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

SpanPoint SpanLog::now() {
  return stream_ == nullptr ? SpanPoint{steady_nanoseconds()} : SpanPoint{0, stream_->mark()};
}

void SpanLog::add(Span span, const SpanPoint& begin) {
  const SpanPoint end = now();
  span.start_ns = begin.ns;
  span.end_ns = end.ns;
  if (stream_ != nullptr && spans_.size() < most_) {
    marks_.emplace_back(*begin.mark, *end.mark);
  }
  add(span);
}

// Times lie before the present, at which the stream has just reached its end.
void SpanLog::settle() {
  if (marks_.empty()) {
    return;
  }
  const StreamMark end = stream_->mark();
  stream_->synchronize();
  const std::int64_t now = steady_nanoseconds();
  const auto time_of = [&](const StreamMark& mark) {
    return now - std::llround(1e9 * mark.seconds_to(end));
  };
  for (const auto& [from, to] : marks_) {
    Span& span = spans_[settled_++];
    span.start_ns = time_of(from);
    span.end_ns = time_of(to);
  }
  marks_.clear();
}

void SpanLog::rewind(std::size_t count) {
  spans_.resize(count);
  settled_ = std::min(settled_, count);
  if (stream_ != nullptr) {
    marks_.resize(count - settled_);
  }
}

}  // namespace trireme
