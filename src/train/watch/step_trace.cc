#include "src/train/watch/step_trace.h"

#include <algorithm>
#include <array>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/trace/trace_summary.h"
#include "src/train/run/run_directory.h"

namespace trireme {
namespace {

// About 16 MB each.
constexpr std::size_t kMostSpans = std::size_t{1} << 18;
constexpr std::size_t kMostOperations = std::size_t{1} << 17;
constexpr std::int64_t kStepsToPass = 2;

// Removes the files of an earlier trace, which would be mistaken for a part of this one.
void remove_traces(const std::filesystem::path& folder) {
  std::error_code ignored;
  for (std::filesystem::directory_iterator at(folder, ignored), end; !ignored && at != end;
       at.increment(ignored)) {
    if (at->path().filename().string().starts_with("rank-")) {
      std::error_code stays;
      std::filesystem::remove(at->path(), stays);
    }
  }
}

}  // namespace

StepTrace::StepTrace(Parts parts)
    : parts_(std::move(parts)), spans_(kMostSpans), operations_(parts_.recorder, kMostOperations) {
  spans_.call_after_compute([this] { operations_.collect(); });
  spans_.follow(parts_.stream);
}

void StepTrace::begin_step(std::int64_t step, std::int64_t end) {
  if (first_ < 0) {
    first_ = step + std::clamp<std::int64_t>(end - step - parts_.steps, 0, kStepsToPass);
  }
  if (state_ == State::ahead && step == first_) {
    start();
  }
  step_ = {SpanKind::step, "step", {step + 1, -1, -1}, 0, 0};
  step_begin_ = spans_.now();
}

// Rank 0 decides the start time and the id of the trace.
void StepTrace::start() {
  if (parts_.world.rank() == 0) {
    remove_traces(parts_.folder);
  }
  clock_ = read_clock(parts_.world);
  std::array<std::int64_t, 2> said = {static_cast<std::int64_t>(wall_clock_seconds() * 1e6),
                                      steady_nanoseconds()};
  parts_.world.broadcast({said.data(), 2, DType::i64}, 0).wait();
  id_ = said[0];
  origin_ns_ = said[1];
  operations_.start();
  spans_.record(true);
  state_ = State::recording;
}

void StepTrace::end_step() {
  if (state_ != State::recording) {
    return;
  }
  operations_.collect();
  if (spans_.recording()) {
    spans_.add(step_, step_begin_);
  }
  spans_.settle();
  if (spans_.dropped() > 0) {  // keep only complete steps
    spans_.rewind(kept_);
    spans_.record(false);
  }
  kept_ = spans_.spans().size();
  if (step_.detail.number == first_ + parts_.steps) {
    finish();
  }
}

void StepTrace::finish() {
  if (state_ != State::recording) {
    return;
  }
  state_ = State::done;
  spans_.record(false);
  spans_.settle();
  operations_.collect();
  operations_.stop();
  const SharedClock clock(clock_, read_clock(parts_.world));
  try {
    write(clock);
    if (parts_.world.rank() == 0) {
      parts_.log.info(
          fmt::format("traced steps {} to {}; 'trireme trace summary {}' shows the result",
                      first_ + 1, step_.detail.number, parts_.folder.string()));
    }
  } catch (const Error& error) {
    parts_.log.warning(
        fmt::format("cannot write the trace of rank {}, the run continues without it: {}",
                    parts_.world.rank(), error.what()));
  }
}

void StepTrace::write(const SharedClock& clock) {
  const auto shared = [&](std::int64_t local_ns) { return clock.at(local_ns) - origin_ns_; };
  std::vector<Span> spans = spans_.spans();
  for (Span& span : spans) {
    span.start_ns = shared(span.start_ns);
    span.end_ns = shared(span.end_ns);
  }
  std::vector<TraceOperation> operations = operations_.operations();
  for (TraceOperation& operation : operations) {
    operation.queued_ns = shared(operation.queued_ns);
    operation.start_ns = shared(operation.start_ns);
    operation.end_ns = shared(operation.end_ns);
  }
  make_directories(parts_.folder);
  write_run_file(trace_file(parts_.folder, parts_.world.rank()),
                 trace_text(header(clock), std::move(spans), std::move(operations)),
                 parts_.sealer.get());
}

TraceHeader StepTrace::header(const SharedClock& clock) const {
  const ProcessGrid& grid = parts_.grid;
  const int rank = parts_.world.rank();
  return {.id = id_,
          .rank = rank,
          .ranks = parts_.world.size(),
          .host = parts_.world.host(rank),
          .device = parts_.device,
          .place = {grid.dp_rank(rank), grid.tp_rank(rank), grid.pp_rank(rank)},
          .grid = {grid.dp(), grid.tp(), grid.pp()},
          .clock_offset_ns = clock.offset_ns(),
          .clock_uncertainty_ns = clock.uncertainty_ns(),
          .clock_drift_ns = clock.drift_ns(),
          .dropped = spans_.dropped() + operations_.dropped()};
}

}  // namespace trireme
