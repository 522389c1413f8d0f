// RunConfig is the configuration of a run as plain structs, one per section of the YAML file.
// load_run_config() merges the sources (src/base/config_binder.h), checks every value, and
// remembers the origin of each. docs/configuration.md describes the same keys for users.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/data/batch_schedule.h"
#include "src/base/config_binder.h"
#include "src/device/dtype.h"
#include "src/nn/model_config.h"
#include "src/train/run/data_sources.h"
#include "src/train/run/distill_config.h"
#include "src/train/run/optimizer_config.h"

namespace trireme {

// The words for train.precision.
inline constexpr std::array kPrecisions = {"bf16", "fp16", "fp32"};
// Returns the type that such a word stands for; nothing for another word.
std::optional<DType> dtype_of_precision(std::string_view word);

struct DataConfig {
  std::vector<DataSource> train;
  std::vector<EvaluationSet> validation;  // empty means no evaluation; the first decides
  std::int64_t sequence = 0;              // tokens; 0 means the model's context
  std::string shuffle = "block";
  std::string documents = "joined";
  bool separates_documents() const { return documents == "separate"; }
  std::uint64_t seed = 1;

  bool is_mixture() const { return train.size() > 1; }
};

// LossScaleConfig is for train.precision: fp16. Scales are powers of two.
struct LossScaleConfig {
  double initial = 65536;
  double minimum = 1;
  double maximum = 4294967296;
  std::int64_t growth_interval = 2000;  // steps; 0 means a fixed scale
};

struct TrainConfig {
  std::int64_t steps = 0;
  std::int64_t global_batch = 0;  // sequences; with a ramp, in the largest batches
  BatchRamp batch_ramp;
  std::int64_t micro_batch = 1;  // sequences
  std::string precision = "bf16";
  LossScaleConfig loss_scale;
  std::string products = "precision";
  std::string fp8_scaling = "current";
  std::int64_t fp8_history = 16;  // steps, with delayed scaling
  float label_smoothing = 0;
  float z_loss = 0;  // weight of the squared log-sum-exp
  std::uint64_t seed = 1;
  std::int64_t log_every = 10;           // steps
  std::int64_t eval_every = 0;           // steps; 0 means only at the end
  std::int64_t eval_samples = 128;       // sequences of the validation set
  std::int64_t early_stop_patience = 0;  // evaluations without improvement; 0 means never
  double early_stop_min_delta = 0;       // nats per token; smaller decreases do not count
  std::int64_t max_skipped_steps = 3;    // consecutive steps that may be skipped
  std::string device = "auto";
  std::string attention = "own";  // what computes attention on GPUs
  bool share_device = false;    // whether a GPU may be shared: by ranks, as a MIG slice, under MPS
  std::string graphs = "auto";  // whether micro-batches are recorded as CUDA graphs
  IntegerOrWord threads{0, "auto"};  // threads per rank
  std::string recompute = "none";
  std::int64_t recompute_every = 1;   // recompute every n-th block if recompute is "full"
  std::int64_t compare_every = 100;   // steps between comparisons of replicas; 0 means never
  std::int64_t straggler_every = 20;  // steps per window of StragglerWatch; 0 means never

  bool scales_loss() const { return precision == "fp16"; }
  bool uses_fp8() const { return products == "fp8"; }
  bool attends_by_cudnn() const { return attention == "cudnn"; }
};

struct ParallelConfig {
  std::string layout = "given";  // or "auto": the planner chooses what follows, up to zero
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
  std::filesystem::path dir;  // empty means <run>/checkpoints
  // Steps between saves on disk; 0 means only at the end and when the run is asked to stop.
  IntegerOrWord every{0, ""};
  IntegerOrWord memory_every{0, ""};  // the same in the nodes' memory; 0 means never
  bool partner = true;                // copy each node's memory to another node
  double mtbf = 0;                    // hours between failures; 0 means as measured, or an estimate
  int keep = 2;
  std::int64_t keep_every = 0;  // keep steps divisible by this for good; 0 means none
  int keep_best = 0;            // number of steps with the lowest validation losses to keep, too
  IntegerOrWord resume{0, "auto"};
  std::filesystem::path init_from;  // where a new run's weights come from; empty: from train.seed
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
  std::int64_t window = 128;        // steps with which a step is compared
  double threshold = 8;             // deviations above their median
  std::int64_t rewind_steps = 100;  // least number of steps by which a rewind goes back
  std::int64_t skip_batches = 100;  // global batches left out after that of the bad step
  std::int64_t max_rewinds = 10;    // limit for the whole run
  // Limit of steps computed again to find the cause; 0 means never.
  std::int64_t replay_steps = 1000;
  bool digests = false;  // keep a digest of each micro-batch's gradient, to find the rank
  bool goes_back() const { return spike == "rewind" || not_finite == "rewind"; }
};

struct DeadlineConfig {  // seconds
  double start = 600;
  double step = 600;
  double checkpoint = 1800;
  double evaluate = 1800;
};

// MetricsConfig is for the text file that node_exporter reads (src/train/report/openmetrics.h).
struct MetricsConfig {
  std::filesystem::path openmetrics;  // a file *.prom, or a folder; empty means none
  double openmetrics_every = 15;      // seconds
};

// EnergyConfig holds the site's factors, by which joules become carbon and money; 0 means unknown.
struct EnergyConfig {
  double co2_grams_per_kwh = 0;
  double price_per_kwh = 0;
  std::string currency = "EUR";
  double pue = 1;  // energy that the site draws for each joule that its nodes use

  // Return the grams or the price of an energy that the counters show; nothing without a factor.
  std::optional<double> grams(double joules) const { return scaled(joules, co2_grams_per_kwh); }
  std::optional<double> price(double joules) const { return scaled(joules, price_per_kwh); }

 private:
  std::optional<double> scaled(double joules, double per_kwh) const {
    constexpr double kJoulesPerKwh = 3.6e6;
    return per_kwh > 0 ? std::optional(joules * pue / kJoulesPerKwh * per_kwh) : std::nullopt;
  }
};

// AuditConfig says where commands record what they do (docs/evidence.md).
struct AuditConfig {
  std::filesystem::path log;  // if empty, nothing is recorded
  std::filesystem::path key;  // signs the log and the provenance of checkpoints; may be empty
  std::vector<std::string> copies = {};  // services that get each line, too (audit_copy.h)

  bool lacks_log() const { return log.empty() && !copies.empty(); }
  static constexpr const char* kLacksLog =
      "audit.copies needs audit.log, whose lines are copied: set audit.log, or remove audit.copies";
};

// EncryptionConfig says with which keys checkpoints, datasets and logs are encrypted
// (docs/encryption.md).
struct EncryptionConfig {
  std::vector<std::string> keys;  // URIs of wrapping keys; if empty, nothing is encrypted
  // Also read checkpoints, or datasets, that are not encrypted, although there are keys.
  bool accept_plain = false;
  bool accept_plain_data = false;
  bool logs = false;  // whether a run also encrypts its logs, metrics, events and traces
};

// SecurityConfig says over what the ranks may exchange data, and what they may ask of the kernel
// (docs/security.md).
struct SecurityConfig {
  std::string transport = "any";      // any, isolated or tunnel:INTERFACE
  std::vector<std::string> networks;  // that isolated allows
  bool seccomp = false;               // whether ranks install a SyscallFilter
  bool lock_memory = false;           // whether ranks keep all of their memory out of swap
};

// LaunchConfig is read by `trireme launch` only.
struct LaunchConfig {
  std::string on_event;        // shell command; empty means none
  double event_deadline = 30;  // seconds
};

struct RunConfig {
  ModelConfig model;
  DataConfig data;
  DistillConfig distill;
  TrainConfig train;
  OptimizerConfig optimizer;
  ParallelConfig parallel;
  CheckpointConfig checkpoint;
  std::string reproducibility = "elastic";
  bool self_check = true;  // compare the kernels with the reference at the start
  std::string comm_backend = "auto";
  std::vector<std::string> comm_require;  // what links between GPUs must be (required_links.h)
  // Written by `trireme bench coll --write-tuning`; empty means none.
  std::filesystem::path comm_tuning;
  DivergenceConfig divergence;
  DeadlineConfig deadline;
  MetricsConfig metrics;
  EnergyConfig energy;
  LaunchConfig launch;
  AuditConfig audit;
  EncryptionConfig encryption;
  SecurityConfig security;
  // A cluster file, or the name of one of configs/cluster/, with whose prediction the run is
  // compared; empty means none.
  std::filesystem::path plan_cluster;
  std::filesystem::path run_dir;
  std::string run_name;
  std::string memory_check = "on";
  std::string log_format = "plain";                 // format of the lines on stderr
  std::int64_t log_bytes = std::int64_t{64} << 20;  // a rank's log is rotated at this size
  std::int64_t trace = 0;                           // number of steps to trace
  IntegerOrWord stop_before_end{0, "auto"};         // seconds

  // Precondition: validated by load_run_config().
  DType compute_dtype() const { return dtype_of_precision(train.precision).value(); }
  BatchSchedule batches() const { return {train.global_batch, train.batch_ramp}; }
  // These are the numbers for the largest steps.
  std::int64_t tokens_per_step() const { return train.global_batch * data.sequence; }
  std::int64_t micro_batches() const { return train.global_batch / train.micro_batch; }
  std::filesystem::path checkpoint_dir() const {
    return checkpoint.dir.empty() ? run_dir / "checkpoints" : checkpoint.dir;
  }
};

struct LoadedConfig {
  RunConfig config;
  ConfigBinder binder;  // remembers the origin of each value
};

// ConfigSources lists the sources of a configuration.
struct ConfigSources {
  std::filesystem::path file;
  std::vector<std::string> arguments;        // key=value
  const char* const* environment = nullptr;  // in the form of environ
  // Further key=value, stronger than all others, which the program has chosen, and their origin.
  std::vector<std::string> chosen = {};
  std::string chosen_by = {};
  std::filesystem::path site = site_folder();
};

// Throws ConfigError that lists all errors.
LoadedConfig load_run_config(const ConfigSources& sources);
// Returns what the site's files and the environment say about `audit`, for commands without a run's
// file.
AuditConfig site_audit_config(const char* const* environment,
                              const std::filesystem::path& site = site_folder());
// Does the same for `encryption`.
EncryptionConfig site_encryption_config(const char* const* environment,
                                        const std::filesystem::path& site = site_folder());
// Returns every key with its default, meaning and allowed values, in the order of the documents.
std::vector<ResolvedKey> run_config_keys();

// Binds the keys of the section `model`, with defaults from the preset if one is named.
void bind(ConfigBinder& binder, ModelConfig& model);
// Binds train.frozen.
void bind(ConfigBinder& binder, FrozenModules& frozen);
// Binds the keys of the section `lora`.
void bind(ConfigBinder& binder, LoraConfig& lora);
// Binds the keys of the section `train`.
void bind(ConfigBinder& binder, TrainConfig& train);
// Binds the keys of the sections `metrics`, `energy`, `launch`, `audit`, `encryption` and
// `security`.
void bind_site_keys(ConfigBinder& binder, RunConfig& config);

}  // namespace trireme
