// SpanLog: what a rank's main thread did in the traced steps: spans of time, within each other or
// one after the other, never across. Whoever works has a pointer to the log, null where nothing is
// traced, and makes a SpanTimer around what it does: without a log that costs one comparison. Owned
// by the training loop; used by its thread alone. Memory is bounded: what does not fit is counted.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace trireme {

enum class SpanKind : std::uint8_t {
  step,        // one turn of the training loop
  compute,     // a step of the pipeline's schedule
  data,        // waits for the loader
  tensor,      // waits for ranks of the tensor-parallel group
  replicas,    // waits for other replicas
  stages,      // waits for another stage
  send,        // hands a tensor to another stage
  meet,        // the exchange of losses: waits for the own pipeline, then for other replicas
  optimizer,   // norm and update
  checkpoint,  // stall
  evaluation,
};
// "step", "compute", "data", "tp", "dp", "pp", "send", "meet", "optimizer", ...
std::string_view name_of(SpanKind kind);
std::optional<SpanKind> parse_span_kind(std::string_view name);

// What a span is about; -1: nothing of the kind.
struct SpanDetail {
  std::int64_t number = -1;  // of the step, or of the micro-batch within the replica
  int chunk = -1;            // of a tensor that moves: the receiver's
  int stage = -1;            // at the other end
};

struct Span {
  SpanKind kind = SpanKind::step;
  std::string_view name;  // outlives the log: a literal
  SpanDetail detail;
  std::int64_t start_ns = 0;  // of the steady clock
  std::int64_t end_ns = 0;
};

// An outer span stands before those inside it.
void sort_by_nesting(std::vector<Span>& spans);

std::int64_t steady_nanoseconds();

class SpanLog {
 public:
  explicit SpanLog(std::size_t most) : most_(most) {}
  SpanLog(const SpanLog&) = delete;
  SpanLog& operator=(const SpanLog&) = delete;

  bool recording() const { return recording_; }
  void record(bool on);
  // Told after every span of compute: a time to see what went on meanwhile.
  void call_after_compute(std::function<void()> call) { after_compute_ = std::move(call); }
  void add(const Span& span);
  // Inner spans before the outer ones.
  const std::vector<Span>& spans() const { return spans_; }
  std::int64_t dropped() const { return dropped_; }
  // Forgets all but the first `count`.
  void rewind(std::size_t count) { spans_.resize(count); }

 private:
  std::size_t most_;
  bool recording_ = false;
  std::vector<Span> spans_;
  std::int64_t dropped_ = 0;
  std::function<void()> after_compute_;
};

// From its construction to end(), or its destruction.
class SpanTimer {
 public:
  SpanTimer(SpanLog* log, SpanKind kind, std::string_view name, SpanDetail detail = {})
      : log_(log != nullptr && log->recording() ? log : nullptr) {
    if (log_ != nullptr) {
      span_ = {kind, name, detail, steady_nanoseconds(), 0};
    }
  }
  ~SpanTimer() { end(); }
  SpanTimer(const SpanTimer&) = delete;
  SpanTimer& operator=(const SpanTimer&) = delete;

  void end() {
    if (log_ != nullptr) {
      span_.end_ns = steady_nanoseconds();
      log_->add(span_);
      log_ = nullptr;
    }
  }

 private:
  SpanLog* log_;
  Span span_;
};

}  // namespace trireme
