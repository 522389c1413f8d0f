// RunConfig: everything that a run is asked to be, as plain structs, one a section of the YAML
// file. load_run_config joins the sources (src/base/config_binder.h), checks every value, and keeps
// where each came from. docs/configuration.md is the user's view of the same keys.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/data/batch_schedule.h"
#include "src/base/config_binder.h"
#include "src/device/dtype.h"
#include "src/nn/model_config.h"
#include "src/optim/optimizer.h"
#include "src/optim/schedule.h"

namespace trireme {

struct DataConfig {
  std::filesystem::path train;
  std::filesystem::path validation;  // empty: no evaluation
  std::int64_t sequence = 0;         // tokens; 0: the model's context
  std::string shuffle = "block";
  std::uint64_t seed = 1;
};

struct TrainConfig {
  std::int64_t steps = 0;
  std::int64_t global_batch = 0;  // sequences; with a ramp, those of the largest batches
  BatchRamp batch_ramp;
  std::int64_t micro_batch = 1;  // sequences
  std::string precision = "bf16";
  float label_smoothing = 0;
  float z_loss = 0;  // weight of the squared log-sum-exp
  std::uint64_t seed = 1;
  std::int64_t log_every = 10;           // steps
  std::int64_t eval_every = 0;           // steps; 0: only at the end
  std::int64_t eval_samples = 128;       // sequences of the validation set
  std::int64_t early_stop_patience = 0;  // evaluations without improvement; 0: never stop early
  double early_stop_min_delta = 0;       // nats per token that count as an improvement
  std::int64_t max_skipped_steps = 3;    // in a row, for a loss or gradient that is not finite
  IntegerOrWord threads{0, "auto"};      // a rank
  std::string recompute = "none";
  std::int64_t recompute_every = 1;   // blocks, of full
  std::int64_t compare_every = 100;   // steps between comparisons of replicas; 0: never
  std::int64_t straggler_every = 20;  // steps of a window; 0: nobody is named
};

struct OptimizerConfig {
  std::string name = "adamw";
  float lr = 3e-4F;
  std::array<double, 2> betas = {0.9, 0.95};
  float eps = 1e-8F;
  float weight_decay = 0.1F;
  float momentum = 0.9F;
  bool nesterov = false;
  float ema = 0;      // decay of the moving average of the weights; 0: none
  float clip = 1.0F;  // of the global gradient norm; 0: none
  Schedule schedule;  // lr and steps are filled in from above

  OptimizerOptions options() const;
};

struct ParallelConfig {
  IntegerOrWord dp{0, "auto"};
  IntegerOrWord tp{1, ""};
  IntegerOrWord pp{1, ""};
  std::string schedule = "1f1b";
  int virtual_stages = 1;
  int zero = 0;
  std::string sequence = "auto";
  std::string placement = "quiet";
  std::int64_t bucket_bytes = std::int64_t{25} << 20;
};

struct CheckpointConfig {
  std::filesystem::path dir;  // empty: <run>/checkpoints
  // Steps between saves on disk; 0: only at the end and when asked to stop.
  IntegerOrWord every{0, ""};
  IntegerOrWord memory_every{0, ""};  // the same in the nodes' memory; 0: never
  bool partner = true;                // each node's memory is copied to another node
  double mtbf = 0;                    // hours between failures; 0: as measured, or a guess
  int keep = 2;
  std::int64_t keep_every = 0;  // steps whose checkpoints stay for good; 0: none
  int keep_best = 0;            // steps of the lowest validation losses that stay, too
  IntegerOrWord resume{0, "auto"};
  bool async = true;
  bool force_lock = false;
  std::vector<std::string> allow_change;  // fingerprint fields that may differ at resume

  static bool is_on(const IntegerOrWord& interval) {
    return interval.is("auto") || interval.integer > 0;
  }
  bool uses_memory() const { return is_on(memory_every); }
};

struct DivergenceConfig {
  std::string not_finite = "skip";
  std::string spike = "warn";
  std::int64_t window = 128;         // steps that a step is compared with
  double threshold = 8;              // deviations above their median
  std::int64_t rewind_steps = 100;   // a rewind goes back at least so far
  std::int64_t skip_batches = 100;   // global batches left out behind the bad step's
  std::int64_t max_rewinds = 10;     // of the whole run
  std::int64_t replay_steps = 1000;  // most that are computed again to tell why; 0: never
  bool digests = false;              // of each micro-batch's gradient, to tell a rank
  bool goes_back() const { return spike == "rewind" || not_finite == "rewind"; }
};

struct DeadlineConfig {  // seconds
  double start = 600;
  double step = 600;
  double checkpoint = 1800;
  double evaluate = 1800;
};

struct RunConfig {
  ModelConfig model;
  DataConfig data;
  TrainConfig train;
  OptimizerConfig optimizer;
  ParallelConfig parallel;
  CheckpointConfig checkpoint;
  std::string reproducibility = "elastic";
  bool self_check = true;  // of the kernels, at the start
  std::string comm_backend = "auto";
  std::filesystem::path comm_tuning;  // table of `trireme bench coll --write-tuning`; empty: none
  DivergenceConfig divergence;
  DeadlineConfig deadline;
  std::filesystem::path run_dir;
  std::string run_name;
  std::string memory_check = "on";
  std::string log_format = "plain";                 // of the lines on stderr
  std::int64_t log_bytes = std::int64_t{64} << 20;  // a rank's log is rotated at this size
  std::int64_t trace = 0;                           // steps
  IntegerOrWord stop_before_end{0, "auto"};         // seconds

  DType compute_dtype() const { return train.precision == "bf16" ? DType::bf16 : DType::f32; }
  BatchSchedule batches() const { return {train.global_batch, train.batch_ramp}; }
  // Tokens and micro-batches of the largest steps.
  std::int64_t tokens_a_step() const { return train.global_batch * data.sequence; }
  std::int64_t micro_batches() const { return train.global_batch / train.micro_batch; }
  std::filesystem::path checkpoint_dir() const {
    return checkpoint.dir.empty() ? run_dir / "checkpoints" : checkpoint.dir;
  }
};

struct LoadedConfig {
  RunConfig config;
  ConfigBinder binder;  // where each value came from
};

// Sources of a configuration beside the run's file.
struct ConfigSources {
  std::filesystem::path file;
  std::vector<std::string> arguments;        // key=value
  const char* const* environment = nullptr;  // as environ
  std::filesystem::path site = site_folder();
};

// ConfigError with all that is wrong.
LoadedConfig load_run_config(const ConfigSources& sources);
// Every key with its default, its meaning and what is allowed, in the order of the documents.
std::vector<ResolvedKey> run_config_keys();

// Binds the keys of the section `model`; also completes a preset, if one is named.
void bind(ConfigBinder& binder, ModelConfig& model);
// Binds the keys of the section `optimizer`.
void bind(ConfigBinder& binder, OptimizerConfig& optimizer);

}  // namespace trireme
