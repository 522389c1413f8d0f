// TrainStep: one optimizer step: this rank's part of its replica's micro-batches, the gradient of
// the global batch, clipping, AdamW. Every rank returns the same result, bit for bit, but for the
// waits. Owned by the training loop, used by its thread.
#pragma once

#include <cstdint>
#include <vector>

#include "src/train/engine/divergence.h"
#include "src/train/engine/engine.h"
#include "src/train/engine/training_state.h"

namespace trireme {

struct StepResult {
  std::int64_t sequences = 0;  // of the global batch
  double loss = 0;             // mean over its tokens
  double grad_norm = 0;        // before clipping
  double lr = 0;
  Judgement judgement;               // without an update weights and moments are untouched
  int stop_signal = 0;               // a signal that any rank has received, or 0
  std::int64_t memory_bytes = 0;     // resident, the largest of all ranks
  std::vector<double> micro_losses;  // of all micro-batches of the step, in their order: nats, sums
  // Of this rank.
  MicroBatchBits bits;
  double data_wait_ms = 0;
  double comm_exposed_ms = 0;   // waited for other replicas, mostly after the last backward
  double tensor_wait_ms = 0;    // for the ranks of the tensor-parallel group
  double pipeline_wait_ms = 0;  // for other stages
  double compute_ms = 0;        // forward and backward, without any of these waits
};

class TrainStep {
 public:
  // Both outlive it. tokens: this rank's micro-batches, step by step.
  TrainStep(Engine& engine, TokenSource tokens) : engine_(engine), tokens_(std::move(tokens)) {}

  // Runs step counters.step and advances the counters, unless the judgement breaks off: then they
  // stay as they were. signal: what this rank has received.
  StepResult run(TrainingCounters& counters, int signal);

 private:
  void run_micro_batches(std::int64_t step, StepResult& result);
  std::int64_t micro_batches(const StepResult& result) const;
  double exposed_seconds() const;
  void share(int signal, StepResult& result);
  double norm();
  SpanKind kind_within_replica() const;
  void update(TrainingCounters& counters, StepResult& result);

  Engine& engine_;
  TokenSource tokens_;
};

// The sum of values[i], one after the other: the order that every layout shares.
double sum_in_order(const double* values, std::int64_t count);
// Resident memory of this process, from /proc/self/statm; 0 where there is none.
std::int64_t resident_bytes();
// The most that was ever resident of this program, from /proc/self/status.
std::int64_t peak_resident_bytes();

}  // namespace trireme
