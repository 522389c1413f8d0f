// TrainingParts: all that a run is made of, built in one order on every rank; a part uses only what
// stands above it, and ends before that. Owned by Training. Collective to build.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "src/train/checkpointing.h"
#include "src/train/layout.h"
#include "src/train/memory_report.h"
#include "src/train/metrics.h"
#include "src/train/step_trace.h"
#include "src/train/straggler_watch.h"
#include "src/train/train_step.h"
#include "src/train/training.h"

namespace trireme {

struct TrainingParts {
  // Resumes, if there is something to resume from.
  TrainingParts(const RunConfig& config, const TrainingHost& host);

  // Leaves checkpoints behind, not destroyed, whose file system hangs: the process ends soon.
  ~TrainingParts();
  TrainingParts(const TrainingParts&) = delete;
  TrainingParts& operator=(const TrainingParts&) = delete;

  // What this rank is doing from here on, and how long it may wait for the others meanwhile.
  void enter(const char* phase, double deadline_seconds);
  // Nats a token on the validation set; the same on all ranks.
  double validation_loss();

  RunConfig config;
  TrainingHost host;
  Communicator& world;
  const Kernels& kernels;
  Stream stream;
  Pool pool{Device{}};
  Pool shared_pool;  // of buffers that the world moves without a copy
  Dataset dataset;
  std::optional<Dataset> validation;
  MemoryReport memory;
  std::unique_ptr<StepTrace> trace;  // null: nothing is traced
  Engine engine;
  RunFingerprints fingerprints;
  std::unique_ptr<TrainingCheckpoints> checkpoints;
  TrainingCounters counters;
  std::unique_ptr<Loader> loader;  // of ranks that see tokens
  std::unique_ptr<TrainStep> step;
  StragglerWatch stragglers;            // of what the steps take
  double ceiling_flops = 0;             // products a second of all ranks, measured
  std::unique_ptr<MetricsLog> metrics;  // rank 0's

 private:
  std::unique_ptr<StepTrace> make_trace() const;
  void log_layout();
  void make_checkpoints();
  void resume();
  void make_loader();
  void measure_ceiling();
  void make_metrics();
};

}  // namespace trireme
