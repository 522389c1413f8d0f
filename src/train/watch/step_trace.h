// StepTrace traces some steps of a run (run.trace) into <run>/trace/rank-00000.json, one file per
// rank, with the spans of the main thread and the operations of its groups in rank 0's time. If the
// trace can't be written, the run continues without it. It is owned by TrainingParts and used by
// the main thread; whatever its parts refer to must outlive it. All ranks make the same calls.
#pragma once

#include <filesystem>

#include "src/base/log.h"
#include "src/base/run_text.h"
#include "src/parallel/process_grid.h"
#include "src/train/watch/operation_log.h"
#include "src/train/watch/shared_clock.h"

namespace trireme {

class StepTrace {
 public:
  struct Parts {
    std::int64_t steps;  // number of steps to trace
    ProcessGrid grid;
    std::filesystem::path folder;
    FlightRecorder& recorder;
    Communicator& world;
    Log& log;
    Stream* stream = nullptr;  // what spans follow, on a device; null: the host
    std::string device = {};   // what this rank computes on
    std::shared_ptr<const RunSealer> sealer = nullptr;  // encrypts the file; null: it is plain
  };
  explicit StepTrace(Parts parts);
  StepTrace(const StepTrace&) = delete;
  StepTrace& operator=(const StepTrace&) = delete;

  // Returns the log to which all parts of the program add their spans.
  SpanLog* spans() { return &spans_; }
  // Call these at the start and end of each iteration of the training loop. The first two steps are
  // not traced, because memory is still being allocated, unless the run ends (at step `end`) too
  // soon. Collective before the first traced step and after the last.
  void begin_step(std::int64_t step, std::int64_t end);
  void end_step();
  // Call at the end of the run. Writes the steps traced so far, if any. Collective.
  void finish();

 private:
  enum class State { ahead, recording, done };
  void start();
  void write(const SharedClock& clock);
  TraceHeader header(const SharedClock& clock) const;

  Parts parts_;
  SpanLog spans_;
  OperationLog operations_;
  State state_ = State::ahead;
  std::int64_t first_ = -1;  // the first step to trace; -1 before it is known
  Span step_;                // the step in progress
  SpanPoint step_begin_;
  std::size_t kept_ = 0;  // number of spans that belong to complete steps
  ClockReading clock_;
  std::int64_t id_ = 0;
  std::int64_t origin_ns_ = 0;  // start of the trace, by rank 0's clock
};

}  // namespace trireme
