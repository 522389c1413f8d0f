// MetricsLog: what a run reports of each logged step: metrics.jsonl, TensorBoard scalars, a line on
// stderr (run.log_format), and a progress bar on a terminal. Rank 0 owns one; the main thread uses
// it. A full disk never stops the training: lines that can't be written are counted and reported
// once. docs/metrics.md describes the fields.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "io/data/batch_schedule.h"
#include "src/train/run/run_directory.h"

namespace trireme {

class Log;

// One logged step. Times cover the steps since the last logged one, as an average a step.
struct StepMetrics {
  std::int64_t step = 0;
  std::int64_t global_batch = 0;  // sequences of this step
  double loss = 0;                // of this step: mean over the tokens of the global batch
  double loss_mean = 0;           // mean of the losses of the steps since the last logged one
  double grad_norm = 0;
  double lr = 0;
  std::int64_t samples = 0;      // consumed so far
  std::int64_t tokens = 0;       // seen so far
  std::int64_t tokens_left = 0;  // of the steps to come
  double tokens_per_s = 0;
  double step_ms = 0;
  double flops_per_s_a_rank = 0;  // model FLOPs, 6N + 6LCT, causal
  double mfu = 0;                 // of the measured product rate of all ranks
  double data_wait_ms = 0;
  double comm_exposed_ms = 0;   // rank 0 waited for other replicas, as the next two for others
  double tensor_wait_ms = 0;    // ranks of its tensor-parallel group
  double pipeline_wait_ms = 0;  // stages of its pipeline
  double checkpoint_stall_ms = 0;
  std::int64_t memory_bytes = 0;  // resident, the largest of all ranks
  std::int64_t skipped_steps = 0;
  std::optional<double> val_loss;
};

struct MetricsPlan {
  std::int64_t first_step = 0;  // steps done before this start
  std::int64_t last_step = 0;
  BatchSchedule batches = 1;
  std::int64_t left_out = 0;     // batches that do not belong to any step
  std::string format = "plain";  // run.log_format

  // Sequences of the batches before a step's, which the time left is estimated from.
  std::int64_t samples_before(std::int64_t step) const { return batches.before(step + left_out); }
};

// The validation loss that metrics.jsonl holds of a step, NaN for null; nothing where it has none.
std::optional<double> logged_validation_loss(const std::filesystem::path& metrics,
                                             std::int64_t step);

// "step 40/2000  loss 4.1234  12.3k tokens/s  3m12s left  lr 6.0e-04  grad norm 0.93".
std::string plain_step_line(const StepMetrics& metrics, const MetricsPlan& plan);
// The words and the order that log scrapers know from Megatron-LM.
std::string megatron_step_line(const StepMetrics& metrics, const MetricsPlan& plan);

class MetricsLog {
 public:
  // Lines of metrics.jsonl beyond first_step are forgotten: their work is done again.
  MetricsLog(const RunDirectory& run, Log& log, const MetricsPlan& plan);
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  void write(const StepMetrics& metrics);
  // A step is done: moves the progress bar, or logs a line now and then where there is none.
  void tick(std::int64_t step);
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trireme
