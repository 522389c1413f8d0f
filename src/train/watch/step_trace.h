// StepTrace: traces some steps of a run (run.trace) into <run>/trace/rank-00000.json, a file a
// rank: lays the spans of the main thread and the operations of its groups on rank 0's clock. A
// trace that can't be written is lost, and the run goes on. Owned by the training loop, used by its
// thread; what its parts name outlives it. All ranks make the same calls.
#pragma once

#include <filesystem>

#include "src/base/log.h"
#include "src/parallel/process_grid.h"
#include "src/train/watch/operation_log.h"
#include "src/train/watch/shared_clock.h"

namespace trireme {

class StepTrace {
 public:
  struct Parts {
    std::int64_t steps;  // to trace
    ProcessGrid grid;
    std::filesystem::path folder;
    FlightRecorder& recorder;
    Communicator& world;
    Log& log;
  };
  explicit StepTrace(Parts parts);
  StepTrace(const StepTrace&) = delete;
  StepTrace& operator=(const StepTrace&) = delete;

  // Where everybody notes what they do.
  SpanLog* spans() { return &spans_; }
  // Around every turn of the training loop. The first two are passed over, for memory is still
  // being handed out, where `end`, the run's last step, leaves enough others. Collective before the
  // first traced step and after the last.
  void begin_step(std::int64_t step, std::int64_t end);
  void end_step();
  // The run ends: writes what there is, if anything. Collective.
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
  std::int64_t first_ = -1;  // step to trace
  Span step_;                // under way
  std::size_t kept_ = 0;     // spans of whole steps
  ClockReading clock_;
  std::int64_t id_ = 0;
  std::int64_t origin_ns_ = 0;  // of the trace, by rank 0's clock
};

}  // namespace trireme
