// SpanLog records what a rank's main thread did in the traced steps, as spans of time that are
// nested or disjoint, but never overlap otherwise. Code that is traced has a pointer to the log,
// null if there is no trace, and makes a SpanTimer around its work, which costs one comparison
// without a log. Owned by the training loop and used by its thread only. Memory is bounded; spans
// that do not fit are counted.
//
// On a device, a span begins and ends when the device reaches the work that the host queues at that
// moment, so that spans show where the device spends its time, and waits for the host are spans in
// which the device is idle. Every SpanTimer is also a range for profilers (NVTX).
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "src/device/cuda_device.h"
#include "src/device/stream.h"

namespace trireme {

enum class SpanKind : std::uint8_t {
  step,        // one iteration of the training loop
  compute,     // one pipeline step
  data,        // waiting for the loader
  tensor,      // waiting for ranks of the tensor-parallel group
  replicas,    // waiting for other replicas
  stages,      // waiting for another stage
  send,        // sending a tensor to another stage
  meet,        // exchange of losses: waiting for the rank's pipeline, then for other replicas
  optimizer,   // gradient norm and update
  checkpoint,  // stall of the training loop
  evaluation,
};
// Returns "step", "compute", "data", "tp", "dp", "pp", "send", "meet", "optimizer", ...
std::string_view name_of(SpanKind kind);
std::optional<SpanKind> parse_span_kind(std::string_view name);

// What a span refers to; -1 if not applicable.
struct SpanDetail {
  std::int64_t number = -1;  // number of the step, or of the micro-batch within the replica
  int chunk = -1;            // chunk of the model; for a tensor that is sent, the receiver's
  int stage = -1;            // the stage at the other end
};

struct Span {
  SpanKind kind = SpanKind::step;
  std::string_view name;  // must outlive the log, as a literal does
  SpanDetail detail;
  std::int64_t start_ns = 0;  // on the steady clock
  std::int64_t end_ns = 0;
};

// Sorts the spans by start and puts outer spans before the spans within them.
void sort_by_nesting(std::vector<Span>& spans);

std::int64_t steady_nanoseconds();

// SpanPoint is the start or the end of a span: a time of the host, or a mark in a stream.
struct SpanPoint {
  std::int64_t ns = 0;
  std::optional<StreamMark> mark = {};
};

class SpanLog {
 public:
  explicit SpanLog(std::size_t most) : most_(most) {}
  SpanLog(const SpanLog&) = delete;
  SpanLog& operator=(const SpanLog&) = delete;

  // Makes spans follow a stream of a device, which outlives the log.
  void follow(Stream* stream) { stream_ = stream; }
  bool recording() const { return recording_; }
  void record(bool on);
  // `call` runs after every span of compute, so that it can see what went on meanwhile.
  void call_after_compute(std::function<void()> call) { after_compute_ = std::move(call); }
  void add(const Span& span);
  // Returns where a span begins or ends now.
  SpanPoint now();
  // Adds a span that began at `begin` and ends now.
  void add(Span span, const SpanPoint& begin);
  // Waits for the stream that spans follow, and sets the times of the spans so far. Such spans have
  // no times before this call.
  void settle();
  // Inner spans precede outer ones.
  const std::vector<Span>& spans() const { return spans_; }
  std::int64_t dropped() const { return dropped_; }
  // Removes all spans but the first `count`.
  void rewind(std::size_t count);

 private:
  std::size_t most_;
  bool recording_ = false;
  std::vector<Span> spans_;
  Stream* stream_ = nullptr;  // null: spans follow the host
  // Begin and end of spans without times: those of number settled_ and later.
  std::vector<std::pair<StreamMark, StreamMark>> marks_;
  std::size_t settled_ = 0;
  std::int64_t dropped_ = 0;
  std::function<void()> after_compute_;
};

// SpanTimer records a span from its construction until end() or its destruction. Both throw
// DeviceError if the device cannot note the time. The destructor records nothing while another
// exception propagates.
class SpanTimer {
 public:
  SpanTimer(SpanLog* log, SpanKind kind, std::string_view name, SpanDetail detail = {})
      : log_(log != nullptr && log->recording() ? log : nullptr) {
    cuda::push_range(name);
    if (log_ != nullptr) {
      span_ = {kind, name, detail, 0, 0};
      begin_ = log_->now();
    }
  }
  ~SpanTimer() noexcept(false) {
    if (std::uncaught_exceptions() == exceptions_) {
      end();
    } else if (is_open_) {
      cuda::pop_range();
    }
  }
  SpanTimer(const SpanTimer&) = delete;
  SpanTimer& operator=(const SpanTimer&) = delete;

  void end() {
    if (!std::exchange(is_open_, false)) {
      return;
    }
    cuda::pop_range();
    if (log_ != nullptr) {
      log_->add(span_, begin_);
    }
  }

 private:
  SpanLog* log_;
  bool is_open_ = true;
  int exceptions_ = std::uncaught_exceptions();
  Span span_;
  SpanPoint begin_;
};

}  // namespace trireme
