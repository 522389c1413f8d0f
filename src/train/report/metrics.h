// MetricsLog writes the metrics of each logged step: metrics.jsonl, TensorBoard scalars, a line on
// stderr (run.log_format), and a progress bar on a terminal. Rank 0 owns one; the main thread uses
// it. A full disk does not stop the training: lines that can't be written are counted and reported
// once. docs/metrics.md describes the fields.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/data/batch_schedule.h"
#include "src/base/run_text.h"
#include "src/train/run/run_config.h"
#include "src/train/run/run_directory.h"

namespace trireme {

class Log;

// SourceMetrics describes one source of a mixture.
struct SourceMetrics {
  std::string name;
  double loss = 0;          // mean of its tokens since the last logged step; NaN without samples
  std::int64_t tokens = 0;  // in its samples consumed so far
  double epochs = 0;        // of it that the data order has passed
};

// ValidationLoss is the loss on one of several validation sets; NaN if it is not known.
struct ValidationLoss {
  std::string name;
  double loss = 0;
};

// StepMetrics holds the metrics of one logged step. Times are averages per step over the steps
// since the last logged one.
struct StepMetrics {
  std::int64_t step = 0;
  std::int64_t global_batch = 0;  // sequences of this step
  double loss = 0;                // of this step: mean over the tokens of the global batch
  // With a teacher, the parts of the loss without their weights.
  std::optional<double> cross_entropy = {};
  std::optional<double> kl_divergence = {};
  double loss_mean = 0;  // mean of the losses of the steps since the last logged one
  double grad_norm = 0;
  double lr = 0;
  std::int64_t samples = 0;      // consumed so far
  std::int64_t tokens = 0;       // in the samples consumed so far
  std::int64_t tokens_left = 0;  // in the steps to come
  double tokens_per_s = 0;
  double step_ms = 0;
  double flops_per_s_per_rank = 0;  // model FLOPs, 6N + 6LCT, causal
  double mfu = 0;                   // share of the measured speed of matrix products on all ranks
  double data_wait_ms = 0;
  double comm_exposed_ms = 0;   // time in which rank 0 waited for other replicas
  double tensor_wait_ms = 0;    // time in which rank 0 waited for its tensor-parallel group
  double pipeline_wait_ms = 0;  // time in which rank 0 waited for other stages of its pipeline
  double checkpoint_stall_ms = 0;
  // Time in which rank 0 computed forward and backward, without these waits; not in metrics.jsonl.
  double compute_ms = 0;
  std::int64_t memory_bytes = 0;  // resident memory of the rank that has most
  std::int64_t skipped_steps = 0;
  // On a GPU, how often rank 0 waited for it, per step, and how often memory of the GPU or pinned
  // memory was allocated since the last logged step.
  std::optional<double> device_waits;
  std::int64_t device_allocations = 0;
  double device_graphs = 0;                     // launched by rank 0, per step
  std::optional<double> loss_scale;             // of the next step; only for fp16
  std::int64_t overflows = 0;                   // steps skipped so far to lower the loss scale
  std::vector<SourceMetrics> sources = {};      // empty unless the run mixes several
  std::optional<double> val_loss;               // on the first set
  std::vector<ValidationLoss> val_losses = {};  // on all sets, if there are several
  std::string device = "cpu";  // what the ranks compute on, RankDevice::kind_text()
  // Joules of all GPUs and of all hosts' processors, per step; nothing if they cannot be read.
  std::optional<double> gpu_joules = {};
  std::optional<double> cpu_joules = {};
  double step_tokens = 0;     // mean of the steps to which the joules belong
  double energy_seconds = 0;  // in which they were used, per step, by the clock of rank 0
  // The same while saves stalled training, per save; nothing if there was no save, too.
  std::optional<double> gpu_save_joules = {};
  std::optional<double> cpu_save_joules = {};
  std::int64_t saves = 0;  // since the last logged step
};

// Returns the joules per step of all GPUs and processors; nothing unless those of all are known.
std::optional<double> energy_per_step(const StepMetrics& metrics);

struct MetricsPlan {
  std::int64_t first_step = 0;  // steps done before this start
  std::int64_t last_step = 0;
  BatchSchedule batches = 1;
  std::int64_t left_out = 0;     // global batches that were left out by rewinds
  std::string format = "plain";  // run.log_format
  EnergyConfig energy = {};

  // Returns the number of sequences in the batches of the first `step` steps and in those left out,
  // from which the remaining time is estimated.
  std::int64_t samples_before(std::int64_t step) const { return batches.before(step + left_out); }
};

// Returns the validation loss of a step in metrics.jsonl, NaN if it is null, or nothing if there is
// none.
std::optional<double> logged_validation_loss(const std::filesystem::path& metrics,
                                             std::int64_t step,
                                             const TextReader& reader = plain_reader());

// Returns "step 40/2000  loss 4.1234  12.3k tokens/s  3m12s left  lr 6.0e-04  grad norm 0.93".
std::string plain_step_line(const StepMetrics& metrics, const MetricsPlan& plan);
// Returns the line of Megatron-LM, with the words and the order that log scrapers expect.
std::string megatron_step_line(const StepMetrics& metrics, const MetricsPlan& plan);

class MetricsLog {
 public:
  // Removes lines of metrics.jsonl after first_step, since those steps are computed again.
  MetricsLog(const RunDirectory& run, Log& log, const MetricsPlan& plan, RunText text = {});
  // Also keeps the file of metrics.openmetrics.
  void keep_openmetrics(const RunConfig& config, std::int64_t ranks);
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  void write(const StepMetrics& metrics);
  // Call after each step. Updates the progress bar, or sometimes logs a line if there is no bar.
  void tick(std::int64_t step);
  // Call once the training loop has ended in order.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trireme
