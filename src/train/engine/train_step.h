// TrainStep runs one optimizer step: this rank's micro-batches, the gradient of the global batch,
// clipping, and the optimizer's update. Every rank returns the same result, bit for bit, except
// what StepResult marks as this rank's. Owned by the training loop and used by its thread; all
// ranks call it together.
#pragma once

#include <cstdint>
#include <vector>

#include "src/train/engine/divergence.h"
#include "src/train/engine/engine.h"
#include "src/train/engine/training_state.h"

namespace trireme {

struct StepResult {
  std::int64_t sequences = 0;  // in the global batch
  double loss = 0;             // mean over the targets of the global batch that count
  std::int64_t counted = 0;    // how many these are: all tokens, unless datasets have loss masks
  double grad_norm = 0;        // norm of the gradient before clipping, without the loss scale
  double loss_scale = 1;       // with which its gradient was computed (loss_scale.h)
  double lr = 0;
  Judgement judgement;               // if it is not to update, weights and moments are unchanged
  int stop_signal = 0;               // a signal that any rank has received, or 0
  std::int64_t memory_bytes = 0;     // resident, the maximum over all ranks
  std::vector<double> micro_losses;  // sums of token losses in nats, of all micro-batches in order
  // The same of all samples of the global batch in order; empty unless the run mixes sources.
  std::vector<double> sample_losses;
  std::vector<double> sample_counts;  // and how many of their targets count
  // With a teacher, the parts of the loss: cross entropy and divergence, both means over the
  // targets that count, without their weights.
  double cross_entropy = 0;
  double divergence = 0;
  // The following are this rank's.
  MicroBatchBits bits;
  std::vector<double> taught;  // sums of both parts of each micro-batch's loss; empty: no teacher
  double data_wait_ms = 0;
  // The next four are times of the device, if the rank computes on one.
  double comm_exposed_ms = 0;   // waited for other replicas, mostly after the last backward
  double tensor_wait_ms = 0;    // waited for ranks of the tensor-parallel group
  double pipeline_wait_ms = 0;  // waited for other stages
  double compute_ms = 0;        // forward and backward, without any of these waits
};

class TrainStep {
 public:
  // The engine outlives it. tokens: returns this rank's micro-batches, step by step.
  TrainStep(Engine& engine, TokenSource tokens) : engine_(engine), tokens_(std::move(tokens)) {}

  // Runs step counters.step and advances the counters, unless the judgement breaks off: then they
  // do not change. signal: a signal that this rank has received, or 0.
  StepResult run(TrainingCounters& counters, int signal);

 private:
  MicroBatchOutput run_micro_batches(const TrainingCounters& counters, StepResult& result);
  ExactSum read(MicroBatchOutput output, StepResult& result);
  std::int64_t micro_batches(const StepResult& result) const;
  double mean_factor(const StepResult& result) const;
  void clear_times();
  void note_times(const StreamMark& begin, const StreamMark& end, StepResult& result) const;
  void share(int signal, StepResult& result);
  double norm(const ExactSum& squares);
  SpanKind kind_within_replica() const;
  void judge_and_update(const ExactSum& squares, TrainingCounters& counters, StepResult& result);
  void update(const OptimizerUpdate& step);

  Engine& engine_;
  TokenSource tokens_;
};

// Returns the sum of values [count], added one after the other, which is the order in all layouts.
double sum_in_order(const double* values, std::int64_t count);
// Returns the resident memory of this process, from /proc/self/statm, or 0 if that is missing.
std::int64_t resident_bytes();
// Returns the largest resident memory that this program has had, from /proc/self/status.
std::int64_t peak_resident_bytes();

}  // namespace trireme
