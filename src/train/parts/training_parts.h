// TrainingParts holds all parts of a run, built in the same order on every rank. A part uses only
// those above it, and is destroyed before them. Owned by Training, or by a replay; used by the
// main thread. The constructor is collective.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "src/train/engine/train_step.h"
#include "src/train/memory/memory_report.h"
#include "src/train/parts/product_choices.h"
#include "src/train/parts/training_host.h"
#include "src/train/report/energy.h"
#include "src/train/report/metrics.h"
#include "src/train/report/running_ceiling.h"
#include "src/train/run/layout.h"
#include "src/train/saving/initial_weights.h"
#include "src/train/saving/training_checkpoints.h"
#include "src/train/start/training_data.h"
#include "src/train/watch/step_trace.h"
#include "src/train/watch/straggler_watch.h"

namespace trireme {

// StartPoint says where the parts start if the configuration does not decide: for a replay or a
// rewind within a process.
struct StartPoint {
  std::int64_t step = 0;
  bool from_seed = false;  // start at step 0 from the seed, without a checkpoint
  // If given, the run continues from there, and leaves out the data up to this run's next step.
  // Otherwise it computes steps again, and neither saves nor logs any.
  std::optional<TrainingCounters> rewound_from = {};
  bool is_replay() const { return !rewound_from; }
};

struct TrainingParts {
  // Resumes from a checkpoint if there is one. Throws NotFound or DataError, on all ranks alike, if
  // the checkpoint of `start` is missing or invalid.
  TrainingParts(const RunConfig& config, const TrainingHost& host,
                const std::optional<StartPoint>& start = std::nullopt);

  // If the checkpoints' file system hangs, abandons them without destroying them: the process ends
  // soon.
  ~TrainingParts();
  TrainingParts(const TrainingParts&) = delete;
  TrainingParts& operator=(const TrainingParts&) = delete;

  // Sets the phase that this rank shows, and the deadline of its waits in that phase.
  void enter(const char* phase, double deadline_seconds);
  // Adds the losses of a step's samples to the windows of their sources. first_sample: number in
  // the run of the step's first sample.
  void note_sources(std::int64_t first_sample, const StepResult& result);
  // Returns the losses on the validation sets in nats per token, the same on all ranks: one for
  // each of data.validation, NaN for a set that is not used or whose samples cannot be read. warn
  // is called on rank 0 with what was wrong. Collective.
  std::vector<double> validation_losses(const std::function<void(const std::string&)>& warn);
  // Returns the validation loss of the current step, if metrics.jsonl holds it. Collective.
  std::optional<double> logged_validation_loss() const;
  // Returns the current step, and the samples and tokens that are done and left, also those of each
  // source of a mixture, with its loss since the last logged step.
  StepMetrics place_metrics() const;
  // Adds the parts of a step's loss if the run has a teacher.
  void add_parts(const StepResult& result, StepMetrics& m) const;
  // Returns what is known of the step from which the run resumed; rates are NaN.
  StepMetrics metrics_of_resumed_step(const PendingEvaluation& pending) const;

  RunConfig config;
  TrainingHost host;
  Communicator& world;  // for messages of the host
  DeviceContext context;
  TrainingData data;
  std::vector<std::optional<Dataset>> validation;  // empty: not configured, unusable on a resume
  Layout layout;
  MemoryReport memory;
  std::unique_ptr<StepTrace> trace;  // null if nothing is traced
  Engine engine;
  ProductChoices choices;
  RunFingerprints fingerprints;
  std::unique_ptr<RunEnergy> energy;  // null in a replay
  std::unique_ptr<TrainingCheckpoints> checkpoints;
  TrainingCounters counters;
  std::unique_ptr<Loader> loader;  // null on ranks that read no tokens
  std::unique_ptr<TrainStep> step;
  StragglerWatch stragglers;              // compares the ranks' step times
  std::optional<RunningCeiling> ceiling;  // for the speed of all ranks; empty in a replay
  std::unique_ptr<MetricsLog> metrics;    // null on ranks other than 0, and in a replay

 private:
  std::vector<SourceMetrics> source_metrics() const;
  std::unique_ptr<StepTrace> make_trace();
  Engine make_engine();
  // Makes what comes after the engine.
  void build(const std::optional<StartPoint>& start);
  void say_what_starts();
  void log_layout();
  void log_graphs();
  DatasetKeys dataset_keys() const;
  TrainingData open_data(const std::optional<StartPoint>& start) const;
  // Does nothing for a rewind: the logs of this process have the label already.
  void bind_label(const std::optional<StartPoint>& start, const std::optional<Label>& label) const;
  void open_validation_sets();
  // Returns nothing if the set cannot be used and the run goes on without it.
  std::optional<Dataset> open_validation_set(const EvaluationSet& set, std::size_t other_shards);
  // origin: null if no checkpoint is to be signed; a replay saves none.
  void make_checkpoints(const RunOrigin* origin, const std::optional<StepFolder>& base);
  void load_base(StepFolder base, bool say);
  void load_teacher(bool say);
  // Returns what admits the step that checkpoint.init_from names.
  AdmitStep begin_from_base() const;
  void resume();
  // Logs what optimizer.keep_zeros does; collective.
  void say_kept_zeros();
  // Sets the weights of step 0.
  void begin();
  void resume_at(const StartPoint& start);
  void make_loader();
  void make_metrics();

  void warn_of_arithmetic();

  std::filesystem::path first_weights_;       // what begin() loads; empty: nothing
  std::optional<std::int64_t> restorations_;  // number found so far (floating_point.h)
  bool warned_of_arithmetic_ = false;         // whether warn_of_arithmetic() has warned
};

}  // namespace trireme
