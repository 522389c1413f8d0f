// TrainingParts: all that a run is made of, built in one order on every rank; a part uses only what
// stands above it, and ends before that. Owned by Training. Collective to build.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "src/train/engine/train_step.h"
#include "src/train/memory/memory_report.h"
#include "src/train/report/metrics.h"
#include "src/train/report/running_ceiling.h"
#include "src/train/run/layout.h"
#include "src/train/saving/training_checkpoints.h"
#include "src/train/training.h"
#include "src/train/watch/step_trace.h"
#include "src/train/watch/straggler_watch.h"

namespace trireme {

// Where a run begins that does not begin as its configuration says: in the midst of a process.
struct StartPoint {
  std::int64_t step = 0;
  bool from_seed = false;  // not from a checkpoint; at step 0
  // Goes on from there, and leaves out the data up to this run's next step; none: computes steps
  // again, and neither saves nor logs any.
  std::optional<TrainingCounters> rewound_from = {};
  bool is_replay() const { return !rewound_from; }
};

struct TrainingParts {
  // Resumes, if there is something to resume from. NotFound or DataError, on all ranks alike, where
  // the checkpoint of a start point is not there or no good.
  TrainingParts(const RunConfig& config, const TrainingHost& host,
                const std::optional<StartPoint>& start = std::nullopt);

  // Leaves checkpoints behind, not destroyed, whose file system hangs: the process ends soon.
  ~TrainingParts();
  TrainingParts(const TrainingParts&) = delete;
  TrainingParts& operator=(const TrainingParts&) = delete;

  // What this rank is doing from here on, and how long it may wait for the others meanwhile.
  void enter(const char* phase, double deadline_seconds);
  // The order of the training data.
  Sampler make_sampler() const;
  // Nats a token on the validation set; the same on all ranks.
  double validation_loss();
  // The validation loss of the step that the run stands at, if metrics.jsonl holds it. Collective.
  std::optional<double> logged_validation_loss() const;
  // Where the run stands: the step, what it has seen and what is left.
  StepMetrics place_metrics() const;
  // What is known of the step that the run was resumed at; rates are NaN.
  StepMetrics metrics_of_resumed_step(const PendingEvaluation& pending) const;

  RunConfig config;
  TrainingHost host;
  Communicator& world;  // for messages of the host
  DeviceContext context;
  Dataset dataset;
  std::optional<Dataset> validation;  // none: not asked for, or unusable since the run began
  MemoryReport memory;
  std::unique_ptr<StepTrace> trace;  // null: nothing is traced
  Engine engine;
  RunFingerprints fingerprints;
  std::unique_ptr<TrainingCheckpoints> checkpoints;
  TrainingCounters counters;
  std::unique_ptr<Loader> loader;  // of ranks that see tokens
  std::unique_ptr<TrainStep> step;
  StragglerWatch stragglers;              // of what the steps take
  std::optional<RunningCeiling> ceiling;  // of the speed of all ranks
  std::unique_ptr<MetricsLog> metrics;    // rank 0's

 private:
  std::unique_ptr<StepTrace> make_trace() const;
  void say_what_starts();
  void log_layout();
  void open_validation_set();
  void make_checkpoints();
  void resume();
  void resume_at(const StartPoint& start);
  void make_loader();
  void make_metrics();

  void warn_of_arithmetic();

  std::optional<std::int64_t> restorations_;  // found so far (floating_point.h)
  bool told_arithmetic_ = false;              // whether warn_of_arithmetic() has warned
};

}  // namespace trireme
